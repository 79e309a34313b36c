"""Notifications: matches of an outbox chunk, grouped by subscription and rendered as messages.

A match on something that its owner may no longer see is not delivered. A match whose event the log has let go becomes
a gap notice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from triplewire.http.formats.messages import EntryPieces, Frames, MessageFormat, Notification, gap_notice
from triplewire.matching.evaluator import PAIR_CPU_SECONDS
from triplewire.matching.index import Membership
from triplewire.matching.plans import SOLUTIONS
from triplewire.matching.results import expand_bindings, expand_graph, expand_terms
from triplewire.matching.shapes import Shape
from triplewire.model import START, Kind, LimitReached, Subscription
from triplewire.security import Visibility
from triplewire.sparql import Query

ONGOING_ROWS: Final = 2_000_000
"""Partial results that may wait for one more triple at one pattern of a continuous query, in one station: some 500 MB.
A query that has more is suspended, with those that share the pattern."""


MATCH_LIMITS = {
    LimitReached.SOLUTIONS: SOLUTIONS,
    LimitReached.WORK: PAIR_CPU_SECONDS,
    LimitReached.STATE: ONGOING_ROWS,
}
"""What there may be of each: solutions, seconds, and rows."""

Numbers = npt.NDArray[np.int64]
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class MatchSelector:
    """A subscription that somebody listens to: where it was made and ended, and what group it belongs to. Of a lane
    only matches above `after` are told, and below `until`. One that is told at once of what came before it is told so
    where it was made, too (`at_once`)."""

    since: int
    until: int
    membership: Membership | None
    after: int = START
    at_once: bool = False


@dataclass(frozen=True)
class MatchGroup:
    """The matches of one subscription: positions in order, and the rows of the chunk's table for each."""

    since: int
    positions: Sequence[int]
    rows: Sequence[Sequence[int]]

    def page(self, after: int, limit: int) -> MatchGroup:
        """The first of those above a position."""
        first = bisect_right(self.positions, after)
        return MatchGroup(self.since, self.positions[first : first + limit], self.rows[first : first + limit])

    def pages(self, size: int) -> Iterator[MatchGroup]:
        """The same in pieces of bounded size; itself, where it is small."""
        if len(self.positions) <= size:
            yield self
            return
        for start in range(0, len(self.positions), size):
            yield MatchGroup(self.since, self.positions[start : start + size], self.rows[start : start + size])


def group_matches(matches: pa.Table, wanted: Iterable[MatchSelector]) -> Iterator[MatchGroup]:
    """The matches of the wanted subscriptions, in order of subscription; the others cost next to nothing."""
    listened = sorted(wanted, key=lambda each: each.since)
    if not listened or not matches.num_rows:
        return
    chunk = _MatchRows(matches, listened)
    for each in listened:
        rows = chunk.of(each)
        if len(rows):
            yield _make_group(each.since, chunk.positions[rows], rows)


def find_positions(matches: pa.Table, wanted: Sequence[MatchSelector]) -> Iterator[tuple[int, Numbers]]:
    """Where each of the wanted was made, and the positions at which it matches, in order; some may be there twice."""
    chunk = _MatchRows(matches, wanted)
    for each in wanted:
        yield each.since, chunk.positions[chunk.of(each)]


def _make_group(since: int, positions: Numbers, rows: Numbers) -> MatchGroup:
    """Rows of one position together."""
    starts = np.flatnonzero(np.diff(positions, prepend=-1)).tolist()
    numbers = rows.tolist()
    parts = [numbers[start:stop] for start, stop in pairwise([*starts, len(numbers)])]
    return MatchGroup(since, positions[starts].tolist(), parts)


class _MatchRows:
    """Rows of a chunk by subscription and by group, in order of position; only of those that are wanted."""

    def __init__(self, matches: pa.Table, wanted: Sequence[MatchSelector]) -> None:
        self.positions: Numbers = matches.column("position").to_numpy()
        self._values = matches.column("value").to_numpy()
        groups = {each.membership.group for each in wanted if each.membership is not None}
        self._by_group = self._rows(matches.column("group"), groups)
        self._by_since = self._rows(matches.column("subscription"), {each.since for each in wanted})

    def of(self, wanted: MatchSelector) -> Numbers:
        """The rows that concern a subscription."""
        own = self._by_since.get(wanted.since, _NONE)
        told = self.positions[own]
        own = own[(told > wanted.after) & (told < wanted.until)]
        if wanted.membership is None:
            return own
        rows = self._by_group.get(wanted.membership.group, _NONE)
        position = self.positions[rows]
        held = (position > max(wanted.since - wanted.at_once, wanted.after)) & (position < wanted.until)
        concerned: Numbers = rows[held & wanted.membership.concerns(self._values[rows])]
        both = np.concatenate((concerned, own))
        sorted_: Numbers = both[np.argsort(self.positions[both], kind="stable")]
        return sorted_ if len(own) else concerned

    def _rows(self, column: pa.ChunkedArray, wanted: set[int]) -> dict[int, Numbers]:
        names: Numbers = column.fill_null(0).to_numpy()
        there = column.is_valid().to_numpy()
        rows = np.flatnonzero(there & np.isin(names, np.fromiter(wanted, np.int64, len(wanted))))
        rows = rows[np.lexsort((self.positions[rows], names[rows]))]
        starts: Numbers = np.flatnonzero(np.diff(names[rows])) + 1
        return {int(names[part[0]]): part for part in np.split(rows, starts) if len(part)}


class MatchSolutions:
    """The solutions of a chunk's matches, by rows; or which limit was reached."""

    def __init__(self, matches: pa.Table) -> None:
        lists = _whole(matches, "solutions")
        self._offsets = lists.offsets.to_numpy()
        self._values = lists.values.to_numpy()
        self._terms = _whole(matches, "terms")
        limits = matches.column("limit")
        reached = np.flatnonzero(limits.is_valid().to_numpy()).tolist() if limits.null_count < len(limits) else ()
        self._limits = {row: limits[row].as_py() for row in reached}

    def at(self, rows: Sequence[int]) -> list[int]:
        """The numbers of the quads."""
        parts = [self._values[self._offsets[row] : self._offsets[row + 1]].tolist() for row in rows]
        return [number for part in parts for number in part]

    def limit(self, rows: Sequence[int]) -> str | None:
        """The limit that was reached; nothing else is known then."""
        return next((self._limits[row] for row in rows if row in self._limits), None) if self._limits else None

    def terms(self, rows: Sequence[int]) -> list[str | None]:
        """The terms, where the solutions are more than quads."""
        return [term for row in rows for term in self._terms[row].as_py() or ()]


def describe_limit(limit: LimitReached) -> dict[str, Any]:
    """How it is told that there was too much of something."""
    return {"limit": {"reached": limit.value, "most": MATCH_LIMITS[limit]}}


def _whole(matches: pa.Table, name: str) -> pa.ListArray:
    column = matches.column(name).combine_chunks()
    return column if isinstance(column, pa.ListArray) else pa.concat_arrays(column.chunks)


def _shows_all(now: EntryPieces, then: EntryPieces, position: int) -> bool:
    """Whether all that was in sight of an event still is."""
    return now.shows(position) and {*then.text(position).split("\n")} <= {*now.text(position).split("\n")}


class MatchPresenter(Protocol):
    """How matches are told: what their owner saw of events when they were matched, and what it sees now. What was
    matched on something that is out of sight by now is told no more."""

    @property
    def sight(self) -> Visibility | None: ...

    @property
    def now(self) -> Visibility | None: ...

    @property
    def made(self) -> int:
        """The key of those who listen."""

    def finding(self, speaker: Renderer, position: int, rows: Sequence[int]) -> Notification:
        """What is said of the rows of one position."""

    def lone(self, speaker: Renderer, position: int, rows: Sequence[int]) -> EntryPieces | None:
        """What is told of a position where there is no event; None where nothing is."""


@dataclass(frozen=True)
class SubscriptionPresenter:
    """Matches of a version of a subscription, by its shape."""

    subscription: Subscription
    shape: Shape
    sight: Visibility | None = None
    now: Visibility | None = None

    @property
    def made(self) -> int:
        return self.subscription.made

    def finding(self, speaker: Renderer, position: int, rows: Sequence[int]) -> Notification:
        of, said = self.subscription, self._said(speaker, position, rows)
        return Notification(of.id, of.kind.value, position, said, of.kind is Kind.EVENT and not said, of.made)

    def lone(self, speaker: Renderer, position: int, rows: Sequence[int]) -> EntryPieces | None:
        return None

    def _said(self, speaker: Renderer, position: int, rows: Sequence[int]) -> dict[str, Any]:
        shape, solutions, limit = self.shape, speaker.solutions, speaker.limit(rows)
        if limit or self.subscription.kind is not Kind.BINDINGS:
            return limit
        if not shape.template and isinstance(shape.query, Query):
            return {"results": expand_terms(shape, solutions.terms(rows))}
        # Quads are numbered as matching has seen them.
        entry = speaker.pieces(shape.sight).entry(position)
        if shape.template:
            return expand_graph(shape, self.subscription, entry, solutions.at(rows), solutions.terms(rows))
        return {"results": expand_bindings(shape, self.subscription.constants, entry, solutions.at(rows))}


@dataclass(frozen=True)
class Renderer:
    """Puts matches of one chunk into words."""

    entries: pa.Table
    solutions: MatchSolutions
    begin: int = START
    """Where the log begins: what is not there before it was trimmed away, and after it erased."""
    _pieces: dict[Visibility | None, EntryPieces] = field(default_factory=dict)

    def frames(self, shown: MatchPresenter, group: MatchGroup, format: MessageFormat) -> Frames:
        """One message for each match on an event that is in sight."""
        known, seen = self.pieces(None).rows, self.pieces(shown.sight)
        now = None if shown.now in (None, shown.sight) else self.pieces(shown.now)
        told: list[int] = []
        parts: list[bytes] = []
        for position, rows in zip(group.positions, group.rows, strict=True):
            if seen.shows(position) and (now is None or _shows_all(now, seen, position)):
                told.append(position)
                parts.append(format.finding(seen, shown.finding(self, position, rows)))
            elif position not in known and (lone := shown.lone(self, position, rows)) is not None:
                told.append(position)
                parts.append(format.finding(lone, shown.finding(self, position, rows)))
            elif position < self.begin and position not in known:
                # The log let the event go before this listener came for it.
                told.append(position)
                parts.append(gap_notice(format, position - 1, position))
        return Frames(told, parts)

    def pieces(self, sight: Visibility | None) -> EntryPieces:
        """What is in sight, made once for all who see the same."""
        if sight not in self._pieces:
            self._pieces[sight] = EntryPieces(self.entries, sight)
        return self._pieces[sight]

    def limit(self, rows: Sequence[int]) -> dict[str, Any]:
        """Which limit was reached, to be told in the place of all else; nothing where none was."""
        limit = self.solutions.limit(rows)
        return {} if limit is None else describe_limit(LimitReached(limit))
