"""Portions: a batch against the subscriptions of some shapes, at once where that is bearable, else in parts.

```
batch ──▶ events with bearable joins ──── all at once ──── too much? in halves ───┐
      └─▶ the others ──────────────────── all at once ──── too much? in halves ───┴─▶ one event
                                                                                         │
       limit ◀── too much, or too many? ── one subscription ◀── in halves ◀── too much? ─┘
```

So a subscription that is too much on an event is found, and told so; all others are answered as if it were not
there.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.allowances import TOO_MUCH, Allowance
from triplewire.config import limits
from triplewire.matching.plans import OF_EVENTS
from triplewire.matching.tables import Table
from triplewire.model import MATCHES, LimitReached
from triplewire.model.errors import QueryLimit
from triplewire.sparql import explode, needs_exact_comparison, to_sql

_FOUND = """CREATE OR REPLACE TEMP TABLE found (
    position BIGINT, subscription BIGINT, solutions INTEGER[], terms VARCHAR[], "limit" VARCHAR
)"""
_SORTED = """
SELECT position, subscription, NULL::BIGINT AS "group", NULL::DOUBLE AS value, solutions, terms, "limit"
FROM found ORDER BY position, subscription
"""
_EVENTS = "CREATE OR REPLACE TEMP VIEW events AS SELECT * FROM quads WHERE quad = 0"
_INVOLVED = f"SELECT count(*) FROM quads WHERE {to_sql(needs_exact_comparison('quads', 'object'), 'duckdb')}"
_ALONE = "INSERT INTO found SELECT DISTINCT position, ?, NULL::INTEGER[], NULL::VARCHAR[], ? FROM quads"

_LEAST_SECONDS = 0.1
"""For events that are looked at together: what planning the query may take."""


class Exhausted(QueryLimit):
    """A shape took all the time that there is for it, and is given up."""

    def __init__(self, shape: str) -> None:
        super().__init__("the query takes too much time")
        self.shape = shape


@dataclass(frozen=True)
class Patience:
    """CPU seconds: for one shape on a batch; on each event of those that are looked at apart; for one subscription on
    one event; and for one shape in all, in whatever parts, after which it is given up."""

    batch: float = limits.BATCH_CPU_SECONDS
    event: float = limits.EVENT_CPU_SECONDS
    pair: float = limits.PAIR_CPU_SECONDS
    whole: float = math.inf


PATIENT = Patience()


@dataclass(frozen=True)
class Portions:
    """Works in a connection, in which it has the tables `quads` and `found`."""

    duck: duckdb.DuckDBPyConnection
    patience: Patience = PATIENT
    clock: Callable[[], float] = time.thread_time
    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """The seconds that each shape took."""

    def match(self, entries: pa.Table, shapes: Mapping[str, Table]) -> pa.Table:
        """The matches of a batch of `ENTRIES`, as a `MATCHES` table sorted by position and subscription. Raises
        Exhausted."""
        plain = self._load(entries, frozenset().union(*(each.columns for each in shapes.values())))
        longest = 1 + (pc.max(pc.count_substring(entries["text"], "\n")).as_py() or 0)
        apart = dict[str, Sequence[int]]()
        with Allowance(self.duck, self.patience.batch) as allowance:
            for key, each in shapes.items():
                allowance.renew()
                with self._counted(key):
                    heavy = self._at_once(each, longest, plain=plain)
                if heavy is not None:
                    apart[key] = heavy
        found = [self._found()]
        for key, heavy in apart.items():
            found += self._bearable(key, self._apart(shapes[key], entries, heavy))
        return found[0] if len(found) == 1 else together(found)

    @contextmanager
    def _counted(self, key: str) -> Iterator[None]:
        began = self.clock()
        yield
        self.spent[key] += self.clock() - began

    def _bearable(self, key: str, parts: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Part by part, until it is too much in all."""
        part: pa.Table | None = None
        while True:
            if self.spent[key] > self.patience.whole:
                raise Exhausted(key)
            with self._counted(key):
                part = next(parts, None)
            if part is None:
                return
            yield part

    def _at_once(self, shape: Table, longest: int, *, plain: bool) -> Sequence[int] | None:
        """None where that was bearable; else the events for which it may not be, as far as they are known."""
        heavy: Sequence[int] = ()
        try:
            heavy = shape.heavy(longest)
            if heavy:
                return heavy
            shape.match_into("found", plain=plain)
        except TOO_MUCH:
            return heavy
        return None

    def _apart(self, shape: Table, entries: pa.Table, heavy: Sequence[int]) -> Iterator[pa.Table]:
        """Those events that may be too much, and the others."""
        among = pc.is_in(entries["position"], pa.array(heavy, pa.int64()))
        yield from self._portion(shape, entries.filter(pc.invert(among)), self.patience.batch)
        yield from self._portion(shape, entries.filter(among), _LEAST_SECONDS)

    def _portion(self, shape: Table, entries: pa.Table, least: float) -> Iterator[pa.Table]:
        count = entries.num_rows
        if count == 1:
            yield self._single(shape, entries)
        elif count:
            plain = self._load(entries, shape.columns)
            try:
                with Allowance(self.duck, max(least, count * self.patience.event)):
                    shape.match_into("found", plain=plain)
                yield self._found()
            except TOO_MUCH:
                yield from self._portion(shape, entries.slice(0, count // 2), least)
                yield from self._portion(shape, entries.slice(count // 2), least)

    def _single(self, shape: Table, entry: pa.Table) -> pa.Table:
        """One event. Subscriptions with equal constants are one."""
        self._load(entry, shape.columns_alone | OF_EVENTS)
        same = shape.alike()
        self._some(shape, [*same])
        found = self._found()
        rows = [(row, each) for row, first in enumerate(found["subscription"].to_pylist()) for each in same[first]]
        told = found.take(pa.array([row for row, _ in rows], pa.int64()))
        names = pa.array([each for _, each in rows], pa.int64())
        return told.set_column(1, MATCHES.field("subscription"), names)

    def _some(self, shape: Table, made: Sequence[int]) -> None:
        """Some subscriptions, by where they were made, on the one event that there is."""
        if len(made) == 1:
            self._pair(shape, made[0])
            return
        try:
            with Allowance(self.duck, self.patience.pair):
                shape.match_some("found", made)
        except TOO_MUCH:
            self._some(shape, made[: len(made) // 2])
            self._some(shape, made[len(made) // 2 :])

    def _pair(self, shape: Table, made: int) -> None:
        """One subscription on one event: it is told what there is, or which limit it reached."""
        try:
            with Allowance(self.duck, self.patience.pair):
                self._tell(shape, made, shape.probe(made))
        except TOO_MUCH:
            self.duck.execute(_ALONE, [made, LimitReached.WORK.value])

    def _tell(self, shape: Table, made: int, count: int) -> None:
        if count > limits.SOLUTIONS:
            self.duck.execute(_ALONE, [made, LimitReached.SOLUTIONS.value])
        elif count and shape.lists:
            shape.match_some("found", [made])
        elif count:
            self.duck.execute(_ALONE, [made, None])

    def _load(self, entries: pa.Table, columns: frozenset[str]) -> bool:
        """The events as the table `quads`, nothing as the table `found`; whether doubles tell all numbers apart."""
        self.duck.execute(_FOUND)
        self.duck.register("entries", entries)
        self.duck.execute(f"CREATE OR REPLACE TEMP TABLE quads AS {_exploding(columns)}")
        self.duck.unregister("entries")
        if "quad" in columns:
            self.duck.execute(_EVENTS)
        return not {"object", "object_number"} <= columns or self.duck.execute(_INVOLVED).fetchall() == [(0,)]

    def _found(self) -> pa.Table:
        return pa.table(self.duck.sql(_SORTED)).cast(MATCHES)


def together(found: Sequence[pa.Table]) -> pa.Table:
    """Matches of several kinds, in the order of all."""
    return pa.concat_tables(found).sort_by([("position", "ascending"), ("subscription", "ascending")])


@lru_cache(maxsize=64)
def _exploding(columns: frozenset[str]) -> str:
    return to_sql(explode("entries", columns=columns), "duckdb")
