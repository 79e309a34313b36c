"""Batches: the pairs of event and subscription that are few enough to be looked at one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from triplewire.access.sights import Sight
from triplewire.matching.singles.events import Parsed
from triplewire.matching.singles.runs import Known
from triplewire.matching.singles.singles import Rows, Single
from triplewire.model import MATCHES, Subscription
from triplewire.model.events import MATCHED_COLUMNS

Pair: TypeAlias = tuple[int, Subscription]
"""The place of an event in its batch, and a subscription."""
NOTHING: pa.Table = MATCHES.empty_table()


class Batch:
    """A batch of `ENTRIES`, with the ontologies that hold for all of them, or what is in sight of it. Events are taken
    apart when they are first asked for, once for all shapes."""

    def __init__(self, entries: pa.Table, ontologies: Known | None = None, sight: Sight | None = None) -> None:
        self._ontologies = ontologies
        self._sight = sight
        self._columns = [(name, entries.column(name)) for name in MATCHED_COLUMNS]
        self._events = dict[int, Parsed | None]()

    def decide(self, pairs: Sequence[Pair], single: Single | None) -> tuple[pa.Table, list[Pair]]:
        """The matches among some pairs, all of one shape, as a `MATCHES` table sorted by position and subscription; and
        the pairs that are left to the evaluator: all, where the shape has no `Single`. Whether a subscription holds at
        the position of an event is not looked at."""
        if single is None or not pairs:
            return NOTHING, [*pairs]
        found, left = list[tuple[int, int, Rows]](), list[Pair]()
        for pair in pairs:
            event, subscription = self._event(pair[0]), pair[1]
            if event is None:
                continue
            rows = single.solve(event, subscription.constants, self._ontologies)
            if rows is None:
                left.append(pair)
            elif rows.matched:
                found.append((event.position, subscription.since, rows))
        return _table(found), left

    def _event(self, place: int) -> Parsed | None:
        """None for one that is out of sight."""
        if place not in self._events:
            entry = {name: column[place].as_py() for name, column in self._columns}
            if self._sight is not None:
                entry["text"] = self._sight.redacted(entry["stream"], entry["event"], entry["text"])
            self._events[place] = None if entry["text"] is None else Parsed(entry)
        return self._events[place]


def _table(found: Sequence[tuple[int, int, Rows]]) -> pa.Table:
    if not found:
        return NOTHING
    ordered = sorted(found, key=lambda each: each[:2])
    made = {
        "position": [each[0] for each in ordered],
        "subscription": [each[1] for each in ordered],
        "solutions": [each[2].solutions for each in ordered],
        "terms": [each[2].terms for each in ordered],
    }
    none = [None] * len(ordered)
    return pa.table([pa.array(made.get(field.name, none), field.type) for field in MATCHES], schema=MATCHES)
