"""Batches: the pairs of event and subscription that are few enough to be looked at one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import pyarrow as pa

from triplewire.matching.shapes import Shape
from triplewire.matching.singles.events import Parsed
from triplewire.matching.singles.singles import Rows, Single, single_of
from triplewire.model import MATCHES, Subscription
from triplewire.model.events import MATTER

Pair: TypeAlias = tuple[int, Subscription]
"""The place of an event in its batch, and a subscription."""


def decide(entries: pa.Table, pairs: Sequence[Pair], shape: Shape) -> tuple[pa.Table, list[Pair]]:
    """`Batch.decide` for whoever has one shape and no use for either again."""
    return Batch(entries).decide(pairs, single_of(shape))


class Batch:
    """A batch of `ENTRIES`. Events are taken apart when they are first asked for, once for all shapes."""

    def __init__(self, entries: pa.Table) -> None:
        self._entries = entries.select([*MATTER])
        self._events = dict[int, Parsed]()

    def decide(self, pairs: Sequence[Pair], single: Single | None) -> tuple[pa.Table, list[Pair]]:
        """The matches among some pairs, all of one shape, as a `MATCHES` table sorted by position and subscription; and
        the pairs that are left to the evaluator: all, where the shape has no `Single`. Whether a subscription holds at
        the position of an event is not looked at."""
        if single is None or not pairs:
            return MATCHES.empty_table(), [*pairs]
        self._take({place for place, _ in pairs} - self._events.keys())
        found, left = list[tuple[int, int, Rows]](), list[Pair]()
        for pair in pairs:
            event, subscription = self._events[pair[0]], pair[1]
            rows = single.solve(event, subscription.constants)
            if rows is None:
                left.append(pair)
            elif rows.matched:
                found.append((event.position, subscription.since, rows))
        return _table(found), left

    def _take(self, places: Iterable[int]) -> None:
        wanted = sorted(places)
        rows = self._entries.take(pa.array(wanted, pa.int64())).to_pylist()
        self._events |= {place: Parsed(row) for place, row in zip(wanted, rows, strict=True)}


def _table(found: Sequence[tuple[int, int, Rows]]) -> pa.Table:
    if not found:
        return MATCHES.empty_table()
    rows = [
        {"position": position, "subscription": since, "solutions": told.solutions, "terms": told.terms}
        for position, since, told in sorted(found, key=lambda each: each[:2])
    ]
    return pa.Table.from_pylist(rows, schema=MATCHES)
