"""Views: what all windows of a query show at an instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triplewire.ongoing.windows.instants import Instant
from triplewire.ongoing.windows.panes import Content, Pane


@dataclass(frozen=True)
class View:
    """The query is asked of these contents, one for each of its windows."""

    instant: Instant
    contents: tuple[Content, ...]

    @property
    def key(self) -> tuple[bytes, ...]:
        """The same for the same events in the same windows."""
        return tuple(each.key for each in self.contents)


@dataclass(frozen=True)
class Showing:
    """What is to be told: a view, beside the one before it, if there was one. What was told of that instant before is
    told again only if it is something else now; `was` is what both views were then."""

    now: View
    before: View | None
    revision: int = 0
    was: tuple[View, View | None] | None = None


def nearest(panes: Sequence[Pane], after: Instant) -> Instant | None:
    """When the next of their windows closes."""
    return min((each for pane in panes if (each := pane.next(after)) is not None), default=None)


def changing(panes: Sequence[Pane], after: Instant) -> Instant | None:
    """When the next of their windows closes that shows something else."""
    return min((each for pane in panes if (each := pane.change(after)) is not None), default=None)


def newest(panes: Sequence[Pane], before: Instant) -> Instant:
    """When the last of their windows closed before an instant."""
    return max(each for pane in panes if (each := pane.previous(before)) is not None)
