"""Subscriptions: standing questions about one event at a time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from triplewire.model.positions import END, START

Names: TypeAlias = str | tuple[str, ...] | None
"""One, any of several, or whatever there is."""


class Kind(StrEnum):
    """How much of a match is delivered."""

    SIGNAL = "signal"
    """That it happened."""
    BINDINGS = "bindings"
    """Every solution, in the shape of SPARQL JSON results."""
    EVENT = "event"
    """The whole event."""


@dataclass(frozen=True)
class Owner:
    """Who made a subscription, with what was granted to them then, and the roles that they had."""

    name: str
    grants: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subscription:
    """A standing question, from the position at which it was made to the one at which it ended.

    It sees the events at positions p with `since < p < until`, and those from `begins` on that came before it was made.
    One that follows ontologies has a version for each of theirs, and one whose owner comes to see more or less has
    another from there on; each begins where the one before it ends, and the first was made at `made`. `shape` is the
    key of its shape, `constants` the terms that fill the shape's parameters; together they say all that matching needs.
    """

    id: str
    sparql: str | None
    """None where every event is meant that the fields below let through."""
    kind: Kind
    shape: str
    constants: tuple[str, ...]
    stream: Names = None
    """Only events of this stream, or of one of these; None means every stream. Likewise for what follows."""
    source: Names = None
    application: Names = None
    vocabulary: Names = None
    """How the IRI of some predicate or class of the event begins."""
    template: tuple[str, int] | None = None
    """Of which the text is, and its version."""
    values: tuple[tuple[str, str], ...] = ()
    """The terms of the template's parameters."""
    filter: str | None = None
    """The filters that stand in the place of a query, as JSON."""
    ttl: float | None = None
    """The seconds after which it ends if nobody listens to it; None for one that stays."""
    entailment: str | None = None
    """`rdfs` where what follows from the ontologies counts, too."""
    begins: int | None = None
    """The first position of the past that it asks for; None for one that does not look back."""
    ontologies: tuple[int, ...] = ()
    """Where those were loaded by which the past is matched."""
    earlier: tuple[int, ...] = ()
    """Where its earlier versions began, the last of them, in order."""
    first: int | None = None
    """Where its first version began; None for that itself."""
    owner: Owner | None = None
    """Who alone may see it, listen to it and end it; None for everyone."""
    sight: str | None = None
    """The name of what its owner sees of events; None for everything."""
    created: int = 0
    since: int = 0
    until: int = END

    @property
    def made(self) -> int:
        """The position at which it was made."""
        return self.since if self.first is None else self.first

    @property
    def floor(self) -> int:
        """The position after which it sees events, those of the past among them."""
        return self.made if self.begins is None else min(self.made, max(START, self.begins - 1))
