"""Notifications: matches of an outbox chunk, grouped by subscription and rendered as messages.

A match on statements that the owner may no longer see is not delivered. A match on an event that retention has
removed
from the log becomes a gap notice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from triplewire.continuous.state import PARTIAL_ROWS
from triplewire.http.formats.messages import EntryPieces, Frames, MessageFormat, Notification, gap_notice
from triplewire.matching.evaluator import PAIR_CPU_SECONDS
from triplewire.matching.index import Membership
from triplewire.matching.index.memberships import GroupMembers
from triplewire.matching.plans import SOLUTIONS
from triplewire.matching.shapes import Shape, expand_bindings, expand_graph, expand_terms
from triplewire.model import START, Kind, LimitReached, Subscription
from triplewire.security import Visibility
from triplewire.sparql import Query

MATCH_LIMITS = {
    LimitReached.SOLUTIONS: SOLUTIONS,
    LimitReached.WORK: PAIR_CPU_SECONDS,
    LimitReached.STATE: PARTIAL_ROWS,
}
"""Value of each limit: solutions, seconds, and rows."""

Numbers = npt.NDArray[np.int64]
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class MatchSelector:
    """Selects the matches of a subscription from an outbox chunk: those at positions p with `after < p < until`.

    One that looks back (`at_once`) also has matches at the position where it was made.
    """

    since: int
    until: int
    membership: Membership | None
    after: int = START
    at_once: bool = False


@dataclass(frozen=True)
class MatchGroup:
    """Matches of one subscription: positions in order, and for each the rows of the chunk's table."""

    since: int
    positions: Sequence[int]
    rows: Sequence[Sequence[int]]

    def page(self, after: int, limit: int) -> MatchGroup:
        """Return the first matches above a position."""
        first = bisect_right(self.positions, after)
        return MatchGroup(self.since, self.positions[first : first + limit], self.rows[first : first + limit])

    def pages(self, size: int) -> Iterator[MatchGroup]:
        """Split it into groups of bounded size; a small one is returned as it is."""
        if len(self.positions) <= size:
            yield self
            return
        for start in range(0, len(self.positions), size):
            yield MatchGroup(self.since, self.positions[start : start + size], self.rows[start : start + size])


def group_matches(matches: pa.Table, selectors: Iterable[MatchSelector]) -> Iterator[MatchGroup]:
    """Group the selected matches, in order of subscription; others cost next to nothing."""
    ordered = sorted(selectors, key=lambda each: each.since)
    if not ordered or not matches.num_rows:
        return
    chunk = _MatchRows(matches, ordered)
    for each in ordered:
        rows = chunk.select(each)
        if len(rows):
            yield _make_group(each.since, chunk.positions[rows], rows)


def find_concerned(matches: pa.Table, members: GroupMembers) -> set[int]:
    """Return the subscriptions that matches name, and the members of groups that they may concern."""
    groups = matches.column("group")
    shared = groups.is_valid().to_numpy()
    found = members.find(groups.fill_null(0).to_numpy()[shared], matches.column("value").to_numpy()[shared])
    return found.union(matches.column("subscription").drop_null().to_pylist())


def find_positions(matches: pa.Table, selectors: Sequence[MatchSelector]) -> Iterator[tuple[int, Numbers]]:
    """Yield for each selector its `since`, and the positions of its matches in order, some perhaps twice."""
    chunk = _MatchRows(matches, selectors)
    for each in selectors:
        yield each.since, chunk.positions[chunk.select(each)]


def _make_group(since: int, positions: Numbers, rows: Numbers) -> MatchGroup:
    starts = np.flatnonzero(np.diff(positions, prepend=-1)).tolist()
    numbers = rows.tolist()
    parts = [numbers[start:stop] for start, stop in pairwise([*starts, len(numbers)])]
    return MatchGroup(since, positions[starts].tolist(), parts)


class _MatchRows:
    """Rows of a chunk by subscription and by group, in order of position; only for the given selectors."""

    def __init__(self, matches: pa.Table, selectors: Sequence[MatchSelector]) -> None:
        self.positions: Numbers = matches.column("position").to_numpy()
        self._values = matches.column("value").to_numpy()
        groups = {each.membership.group for each in selectors if each.membership is not None}
        self._by_group = self._rows(matches.column("group"), groups)
        self._by_since = self._rows(matches.column("subscription"), {each.since for each in selectors})

    def select(self, selector: MatchSelector) -> Numbers:
        own = self._by_since.get(selector.since, _NONE)
        position = self.positions[own]
        own = own[(position > selector.after) & (position < selector.until)]
        if selector.membership is None:
            return own
        rows = self._by_group.get(selector.membership.group, _NONE)
        position = self.positions[rows]
        within = (position > max(selector.since - selector.at_once, selector.after)) & (position < selector.until)
        concerned: Numbers = rows[within & selector.membership.concerns(self._values[rows])]
        both = np.concatenate((concerned, own))
        ordered: Numbers = both[np.argsort(self.positions[both], kind="stable")]
        return ordered if len(own) else concerned

    def _rows(self, column: pa.ChunkedArray, keys: set[int]) -> dict[int, Numbers]:
        names: Numbers = column.fill_null(0).to_numpy()
        valid = column.is_valid().to_numpy()
        rows = np.flatnonzero(valid & np.isin(names, np.fromiter(keys, np.int64, len(keys))))
        rows = rows[np.lexsort((self.positions[rows], names[rows]))]
        starts: Numbers = np.flatnonzero(np.diff(names[rows])) + 1
        return {int(names[part[0]]): part for part in np.split(rows, starts) if len(part)}


class MatchSolutions:
    """Solutions of a chunk's matches by row, or the limit that was reached."""

    def __init__(self, matches: pa.Table) -> None:
        lists = _combine_lists(matches, "solutions")
        self._offsets = lists.offsets.to_numpy()
        self._values = lists.values.to_numpy()
        self._terms = _combine_lists(matches, "terms")
        limits = matches.column("limit")
        reached = np.flatnonzero(limits.is_valid().to_numpy()).tolist() if limits.null_count < len(limits) else ()
        self._limits = {row: limits[row].as_py() for row in reached}

    def quads(self, rows: Sequence[int]) -> list[int]:
        """Return the numbers of the quads of solutions."""
        parts = [self._values[self._offsets[row] : self._offsets[row + 1]].tolist() for row in rows]
        return [number for part in parts for number in part]

    def limit(self, rows: Sequence[int]) -> str | None:
        """Return the limit that was reached; the solutions are not known then."""
        return next((self._limits[row] for row in rows if row in self._limits), None) if self._limits else None

    def terms(self, rows: Sequence[int]) -> list[str | None]:
        """Return the terms of solutions that are more than quads."""
        return [term for row in rows for term in self._terms[row].as_py() or ()]


def _combine_lists(matches: pa.Table, name: str) -> pa.ListArray:
    column = matches.column(name).combine_chunks()
    return column if isinstance(column, pa.ListArray) else pa.concat_arrays(column.chunks)


def describe_limit(limit: LimitReached) -> dict[str, Any]:
    """Return the content of a notification in place of more solutions than a limit."""
    return {"limit": {"reached": limit.value, "most": MATCH_LIMITS[limit]}}


class MatchPresenter(Protocol):
    """Renders matches of one subscription or query, with what its owner saw when they were made, and sees now."""

    @property
    def visibility(self) -> Visibility | None: ...

    @property
    def visibility_now(self) -> Visibility | None: ...

    @property
    def made(self) -> int:
        """Key of the live topic."""

    def present(self, renderer: Renderer, position: int, rows: Sequence[int]) -> Notification:
        """Return the notification for the rows of one position."""

    def placeholder(self, renderer: Renderer, position: int, rows: Sequence[int]) -> EntryPieces | None:
        """Return what stands for the event at a position that has none; None where nothing is delivered then."""


@dataclass(frozen=True)
class SubscriptionPresenter:
    """Renders matches of a version of a subscription by its shape."""

    subscription: Subscription
    shape: Shape
    visibility: Visibility | None = None
    visibility_now: Visibility | None = None

    @property
    def made(self) -> int:
        return self.subscription.made

    def present(self, renderer: Renderer, position: int, rows: Sequence[int]) -> Notification:
        subscription, content = self.subscription, self._content(renderer, position, rows)
        whole = subscription.kind is Kind.EVENT and not content
        return Notification(
            subscription.id, subscription.kind.value, position, content, whole=whole, made=subscription.made
        )

    def placeholder(self, renderer: Renderer, position: int, rows: Sequence[int]) -> EntryPieces | None:
        return None

    def _content(self, renderer: Renderer, position: int, rows: Sequence[int]) -> dict[str, Any]:
        shape, solutions, limit = self.shape, renderer.solutions, renderer.limit(rows)
        if limit or self.subscription.kind is not Kind.BINDINGS:
            return limit
        if not shape.template and isinstance(shape.query, Query):
            return {"results": expand_terms(shape, solutions.terms(rows))}
        # Quads are numbered as the matcher has seen them.
        entry = renderer.pieces(shape.visibility).entry(position)
        if shape.template:
            return expand_graph(shape, self.subscription, entry, solutions.quads(rows), solutions.terms(rows))
        return {"results": expand_bindings(shape, entry, solutions.quads(rows))}


@dataclass(frozen=True)
class Renderer:
    """Renders matches of one chunk as messages."""

    entries: pa.Table
    solutions: MatchSolutions
    begin: int = START
    """First position of the log: an entry that is missing before it was trimmed, one after it was erased."""
    _pieces: dict[Visibility | None, EntryPieces] = field(default_factory=dict)

    def frames(self, presenter: MatchPresenter, group: MatchGroup, format: MessageFormat) -> Frames:
        """Render one message for each match on an event that is visible."""
        known, then = self.pieces(None).rows, self.pieces(presenter.visibility)
        same = presenter.visibility_now in (None, presenter.visibility)
        now = None if same else self.pieces(presenter.visibility_now)
        positions: list[int] = []
        parts: list[bytes] = []
        for position, rows in zip(group.positions, group.rows, strict=True):
            if then.is_visible(position) and (now is None or _is_still_visible(now, then, position)):
                part = format.notification(then, presenter.present(self, position, rows))
            elif position in known:
                continue
            elif (placeholder := presenter.placeholder(self, position, rows)) is not None:
                part = format.notification(placeholder, presenter.present(self, position, rows))
            elif position < self.begin:
                part = gap_notice(format, position - 1, position)
            else:
                continue
            positions.append(position)
            parts.append(part)
        return Frames(positions, parts)

    def pieces(self, visibility: Visibility | None) -> EntryPieces:
        """Return the visible pieces, made once for all clients with the same visibility."""
        if visibility not in self._pieces:
            self._pieces[visibility] = EntryPieces(self.entries, visibility)
        return self._pieces[visibility]

    def limit(self, rows: Sequence[int]) -> dict[str, Any]:
        """Return the content that names the limit that was reached; empty where none was."""
        limit = self.solutions.limit(rows)
        return {} if limit is None else describe_limit(LimitReached(limit))


def _is_still_visible(now: EntryPieces, then: EntryPieces, position: int) -> bool:
    """Return whether all statements of an event that were visible still are."""
    return now.is_visible(position) and {*then.text(position).split("\n")} <= {*now.text(position).split("\n")}
