"""Notifications: matches put into words, for those who listen to a subscription."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from triplewire.edge.entries import Pieces
from triplewire.edge.frames import Frames, gap, members, message
from triplewire.matching.expansion import bindings, graph, tabulated
from triplewire.matching.shapes import Shape
from triplewire.model import Kind, Subscription
from triplewire.sparql import Query

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Group:
    """The matches of one subscription: positions in order, and the row of the chunk's table for each."""

    since: int
    positions: Sequence[int]
    rows: Sequence[int]

    def page(self, after: int, limit: int) -> Group:
        """The first of those above a position."""
        first = bisect_right(self.positions, after)
        return Group(self.since, self.positions[first : first + limit], self.rows[first : first + limit])

    def pages(self, size: int) -> Iterator[Group]:
        """The same in pieces of bounded size; itself, where it is small."""
        if len(self.positions) <= size:
            yield self
            return
        for start in range(0, len(self.positions), size):
            yield Group(self.since, self.positions[start : start + size], self.rows[start : start + size])


def grouped(matches: pa.Table, wanted: Sequence[int]) -> Iterator[Group]:
    """The matches of the wanted subscriptions, in order of subscription; the others cost next to nothing."""
    subscriptions: Numbers = matches.column("subscription").to_numpy()
    rows = np.flatnonzero(np.isin(subscriptions, np.asarray(wanted, dtype=np.int64)))
    if not len(rows):
        return
    positions: Numbers = matches.column("position").to_numpy()
    rows = rows[np.lexsort((positions[rows], subscriptions[rows]))]
    sinces, places, numbers = subscriptions[rows].tolist(), positions[rows].tolist(), rows.tolist()
    starts = np.flatnonzero(np.diff(subscriptions[rows], prepend=-1)).tolist()
    for start, stop in pairwise([*starts, len(numbers)]):
        yield Group(sinces[start], places[start:stop], numbers[start:stop])


class Solutions:
    """The solutions of a chunk's matches, by row."""

    def __init__(self, matches: pa.Table) -> None:
        lists = _whole(matches, "solutions")
        self._offsets = lists.offsets.to_numpy()
        self._values = lists.values.to_numpy()
        self._terms = _whole(matches, "terms")

    def at(self, row: int) -> list[int]:
        """The numbers of the quads."""
        found: list[int] = self._values[self._offsets[row] : self._offsets[row + 1]].tolist()
        return found

    def terms(self, row: int) -> list[str | None]:
        """The terms, where the solutions are more than quads."""
        found: list[str | None] = self._terms[row].as_py() or []
        return found


def _whole(matches: pa.Table, name: str) -> pa.ListArray:
    column = matches.column(name).combine_chunks()
    return column if isinstance(column, pa.ListArray) else pa.concat_arrays(column.chunks)


@dataclass(frozen=True)
class Speaker:
    """Puts matches of one chunk into words."""

    pieces: Pieces
    solutions: Solutions

    def frames(self, subscription: Subscription, shape: Shape, group: Group) -> Frames:
        """One message for each match."""
        opening = members({"subscription": subscription.id, "kind": subscription.kind.value})
        known = self.pieces.rows
        parts = []
        for position, row in zip(group.positions, group.rows, strict=True):
            if position not in known:
                # The log let the event go before this listener came for it.
                parts.append(gap(position - 1, position))
                continue
            rest = self._rest(subscription, shape, position, row)
            data = b"{%b,%b%b}" % (opening, self.pieces.brief(position), rest)
            parts.append(message(b"notification", data, position))
        return Frames(group.positions, parts)

    def _rest(self, subscription: Subscription, shape: Shape, position: int, row: int) -> bytes:
        if subscription.kind is Kind.SIGNAL:
            return b""
        if subscription.kind is Kind.EVENT:
            return b"," + self.pieces.body(position)
        if shape.template:
            entry, quads, terms = self.pieces.entry(position), self.solutions.at(row), self.solutions.terms(row)
            return b"," + members(graph(shape, subscription, entry, quads, terms))
        if isinstance(shape.query, Query):
            return b"," + members({"results": tabulated(shape, self.solutions.terms(row))})
        entry = self.pieces.entry(position)
        results = bindings(shape, subscription.constants, entry, self.solutions.at(row))
        return b"," + members({"results": results})
