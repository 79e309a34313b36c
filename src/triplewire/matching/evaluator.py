"""The evaluator: matches any subscription, as SQL that DuckDB runs over a whole batch of events.

Each shape is one query: self-joins inside the event, and a join with the table of constants of its subscriptions.
Matches are then checked against the positions between which each subscription holds, so that a batch is matched
against the registry as it was at each of its events. A batch that takes too much time or memory is split:

```
batch ──▶ events with small joins ────── all at once ──── over budget? halves ───┐
      └─▶ the others ─────────────────── all at once ──── over budget? halves ───┴─▶ one event
                                                                                        │
   limit ◀── over budget, or too many? ── one subscription ◀── halves ◀── over budget? ─┘
```

So a subscription that is too expensive on an event is found and reported; all others are answered as if it did not
exist.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.matching.plans import EVENT_COLUMNS, SOLUTIONS
from triplewire.matching.shapes import Shape
from triplewire.matching.tables import OntologyClosure, SubscriptionTable, TableFactory, make_plain_table
from triplewire.matching.visibility import redact_entries
from triplewire.model import MATCHES, LimitReached, Subscription, no_matches
from triplewire.model.errors import QueryLimit
from triplewire.model.events import drop_opaque_payloads
from triplewire.security.visibility import Visibility
from triplewire.sparql import Conjunction, explode, needs_exact_comparison, to_sql
from triplewire.sparql.algebra import Const, header_column
from triplewire.sparql.compiler.subscriptions import required_patterns
from triplewire.sparql.cpu_limit import LIMIT_ERRORS, CpuLimit
from triplewire.sparql.dialects.duckdb import open_engine
from triplewire.sparql.queries import ensure_recursion_limit
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import (
    SHAPE,
    SUBSCRIPTION,
    subscription_from_change,
    subscription_to_value,
)

BATCH_CPU_SECONDS: Final = 10.0
"""CPU time of the evaluator for one shape on one batch. A batch that takes longer is halved, repeatedly."""

EVENT_CPU_SECONDS: Final = 0.005
"""CPU time for one shape on each event of a heavy part of a batch: as much as matching the event alone takes."""

PAIR_CPU_SECONDS: Final = 2.0
"""CPU time of the evaluator for one subscription on one event: about a hundred million rows of a join. A
subscription that takes longer is told that it reached a limit."""

EVALUATOR_MEMORY: Final = "2GB"
"""Memory of the evaluator of one worker, its tables of constants included. Nothing is spilled to disk."""


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
"""The least CPU time for a part of a batch: to plan the query takes that long."""


class BudgetExhausted(QueryLimit):
    """A shape exhausted its CPU budget in all."""

    def __init__(self, shape: str) -> None:
        super().__init__("the query takes too much time")
        self.shape = shape


@dataclass(frozen=True)
class CpuBudget:
    """CPU seconds: for one shape on a batch; on each event of a heavy part; for one subscription on one event; and
    for one shape in all, after which `BudgetExhausted` is raised."""

    batch: float = BATCH_CPU_SECONDS
    event: float = EVENT_CPU_SECONDS
    pair: float = PAIR_CPU_SECONDS
    total: float = math.inf


DEFAULT_BUDGET = CpuBudget()


@dataclass(frozen=True)
class BatchSplitter:
    """Matches batches in a connection, with the temporary tables `quads` and `found`."""

    duck: duckdb.DuckDBPyConnection
    budget: CpuBudget = DEFAULT_BUDGET
    clock: Callable[[], float] = time.thread_time
    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """The CPU seconds that each shape took."""

    def match(self, entries: pa.Table, shapes: Mapping[str, SubscriptionTable]) -> pa.Table:
        """The matches of a batch of `ENTRIES`, as a `MATCHES` table sorted by position and subscription. Raises
        BudgetExhausted."""
        plain = self._load(entries, frozenset().union(*(each.columns for each in shapes.values())))
        longest = 1 + (pc.max(pc.count_substring(entries["text"], "\n")).as_py() or 0)
        apart = dict[str, Sequence[int]]()
        with CpuLimit(self.duck, self.budget.batch) as allowance:
            for key, each in shapes.items():
                allowance.renew()
                with self._timed(key):
                    heavy = self._match_whole(each, longest, plain=plain)
                if heavy is not None:
                    apart[key] = heavy
        found = [self._read_found()]
        for key, heavy in apart.items():
            found += self._within_budget(key, self._match_apart(shapes[key], entries, heavy))
        return found[0] if len(found) == 1 else merge_matches(found)

    @contextmanager
    def _timed(self, key: str) -> Iterator[None]:
        began = self.clock()
        yield
        self.spent[key] += self.clock() - began

    def _within_budget(self, key: str, parts: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Yield part by part. Raises BudgetExhausted when the shape took too much in all."""
        part: pa.Table | None = None
        while True:
            if self.spent[key] > self.budget.total:
                raise BudgetExhausted(key)
            with self._timed(key):
                part = next(parts, None)
            if part is None:
                return
            yield part

    def _match_whole(self, shape: SubscriptionTable, longest: int, *, plain: bool) -> Sequence[int] | None:
        """Match the whole batch. Return None, or, if it is too heavy, the positions of heavy events as far as they
        are known."""
        heavy: Sequence[int] = ()
        try:
            heavy = shape.heavy(longest)
            if heavy:
                return heavy
            shape.match_into("found", plain=plain)
        except LIMIT_ERRORS:
            return heavy
        return None

    def _match_apart(self, shape: SubscriptionTable, entries: pa.Table, heavy: Sequence[int]) -> Iterator[pa.Table]:
        """Match light and heavy events apart."""
        among = pc.is_in(entries["position"], pa.array(heavy, pa.int64()))
        yield from self._match_part(shape, entries.filter(pc.invert(among)), self.budget.batch)
        yield from self._match_part(shape, entries.filter(among), _LEAST_SECONDS)

    def _match_part(self, shape: SubscriptionTable, entries: pa.Table, least: float) -> Iterator[pa.Table]:
        count = entries.num_rows
        if count == 1:
            yield self._match_event(shape, entries)
        elif count:
            plain = self._load(entries, shape.columns)
            try:
                with CpuLimit(self.duck, max(least, count * self.budget.event)):
                    shape.match_into("found", plain=plain)
                yield self._read_found()
            except LIMIT_ERRORS:
                yield from self._match_part(shape, entries.slice(0, count // 2), least)
                yield from self._match_part(shape, entries.slice(count // 2), least)

    def _match_event(self, shape: SubscriptionTable, entry: pa.Table) -> pa.Table:
        """Match one event. Subscriptions with equal constants are matched once."""
        self._load(entry, shape.columns_alone | EVENT_COLUMNS)
        same = shape.alike()
        self._match_some(shape, [*same])
        found = self._read_found()
        rows = [(row, each) for row, first in enumerate(found["subscription"].to_pylist()) for each in same[first]]
        matched = found.take(pa.array([row for row, _ in rows], pa.int64()))
        names = pa.array([each for _, each in rows], pa.int64())
        return matched.set_column(1, MATCHES.field("subscription"), names)

    def _match_some(self, shape: SubscriptionTable, made: Sequence[int]) -> None:
        """Match some subscriptions, by the positions at which they were made, on the one event in `quads`."""
        if len(made) == 1:
            self._match_pair(shape, made[0])
            return
        try:
            with CpuLimit(self.duck, self.budget.pair):
                shape.match_some("found", made)
        except LIMIT_ERRORS:
            self._match_some(shape, made[: len(made) // 2])
            self._match_some(shape, made[len(made) // 2 :])

    def _match_pair(self, shape: SubscriptionTable, made: int) -> None:
        """Match one subscription on one event: it gets its solutions, or the limit that it reached."""
        try:
            with CpuLimit(self.duck, self.budget.pair):
                self._write_pair(shape, made, shape.probe(made))
        except LIMIT_ERRORS:
            self.duck.execute(_ALONE, [made, LimitReached.WORK.value])

    def _write_pair(self, shape: SubscriptionTable, made: int, count: int) -> None:
        if count > SOLUTIONS:
            self.duck.execute(_ALONE, [made, LimitReached.SOLUTIONS.value])
        elif count and shape.lists:
            shape.match_some("found", [made])
        elif count:
            self.duck.execute(_ALONE, [made, None])

    def _load(self, entries: pa.Table, columns: frozenset[str]) -> bool:
        """Load the events into `quads`, and empty `found`. Return whether doubles tell all numbers apart."""
        self.duck.execute(_FOUND)
        self.duck.register("entries", entries)
        self.duck.execute(f"CREATE OR REPLACE TEMP TABLE quads AS {_explode_sql(columns)}")
        self.duck.unregister("entries")
        if "quad" in columns:
            self.duck.execute(_EVENTS)
        return not {"object", "object_number"} <= columns or self.duck.execute(_INVOLVED).fetchall() == [(0,)]

    def _read_found(self) -> pa.Table:
        return pa.table(self.duck.sql(_SORTED)).cast(MATCHES)


def merge_matches(found: Sequence[pa.Table]) -> pa.Table:
    """Concatenate and sort matches."""
    return pa.concat_tables(found).sort_by([("position", "ascending"), ("subscription", "ascending")])


@lru_cache(maxsize=64)
def _explode_sql(columns: frozenset[str]) -> str:
    return to_sql(explode("entries", columns=columns), "duckdb")


@dataclass
class Evaluator:
    """Matches batches of events against the subscriptions that registry changes have added, held as tables.

    Not thread-safe: one evaluator belongs to one worker. `version` is the position up to which registry changes have
    been applied; matching a batch that ends later would miss subscriptions.
    """

    _duck: duckdb.DuckDBPyConnection = field(default_factory=lambda: open_evaluator_engine())
    _closures: OntologyClosure | None = None
    """The closure of the connection, if several evaluators share it; their tables differ by name."""
    _name: str = "constants"
    _budget: CpuBudget = field(default_factory=CpuBudget)
    _make_table: TableFactory = make_plain_table
    _clock: Callable[[], float] = time.thread_time
    version: int = 0
    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """The CPU seconds that each shape took since the caller last cleared it."""
    _shapes: dict[str, SubscriptionTable] = field(default_factory=dict)
    _visibilities: dict[str, Visibility | None] = field(default_factory=dict)
    _members: dict[str, tuple[str, int]] = field(default_factory=dict)
    _ended: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Ended subscriptions, by the position at which they were made: their shape, and the position of their end. In
    order of their ends."""

    def __post_init__(self) -> None:
        self._ontologies = self._closures or OntologyClosure(self._duck)

    def apply(self, changes: Iterable[RegistryChange], position: int) -> None:
        """Apply registry changes, in order; afterwards the evaluator is complete up to `position`."""
        for change in changes:
            if change.kind == SHAPE and change.value is not None and change.key not in self._shapes:
                shape, name = Shape.from_value(change.value), f"{self._name}_{change.key}"
                self._shapes[change.key] = self._make_table(self._duck, self._ontologies, shape, name)
                self._visibilities[change.key] = shape.visibility
            elif change.kind == SUBSCRIPTION:
                self._change_member(change)
            else:
                self._ontologies.apply(change)
        self.version = position

    def match(self, entries: pa.Table, shapes: Collection[str] | None = None) -> pa.Table:
        """The matches of a batch of `ENTRIES`, as a `MATCHES` table sorted by position and subscription; of all
        shapes, or of some. Opaque payloads match nothing."""
        entries = drop_opaque_payloads(entries)
        asked = self._shapes if shapes is None else {key: self._shapes[key] for key in shapes}
        live = {key: each for key, each in asked.items() if each.prepare()}
        if not live or not entries.num_rows:
            return no_matches()
        self._ontologies.prepare()
        portions = BatchSplitter(self._duck, self._budget, self._clock, self.spent)
        found = [
            portions.match(redact_entries(entries, visibility), part) for visibility, part in self._by_visibility(live)
        ]
        return self.select_live(found[0] if len(found) == 1 else merge_matches(found))

    def _by_visibility(
        self, live: Mapping[str, SubscriptionTable]
    ) -> Iterable[tuple[Visibility | None, dict[str, SubscriptionTable]]]:
        parts = defaultdict[Visibility | None, dict[str, SubscriptionTable]](dict)
        for key, each in live.items():
            parts[self._visibilities[key]][key] = each
        return parts.items()

    def forget(self, before: int) -> int:
        """Drop subscriptions that ended before a position; no later batch can concern them. Return the last of their
        ends, or 0."""
        gone = {since: shape for since, (shape, until) in self._ended.items() if until < before}
        for shape in set(gone.values()):
            self._shapes[shape].remove([since for since, its in gone.items() if its == shape])
        return max((self._ended.pop(since)[1] for since in gone), default=0)

    def _change_member(self, change: RegistryChange) -> None:
        if change.key in self._members:
            shape, since = self._members.pop(change.key)
            self._ended[since] = (shape, change.position)
        if change.value is not None:
            subscription = subscription_from_change(change)
            self._shapes[subscription.shape].add(subscription)
            self._members[change.key] = (subscription.shape, subscription.since)

    def select_live(self, found: pa.Table) -> pa.Table:
        """The matches whose subscription was made before the event and ended after it."""
        position, since = found["position"].to_numpy(), found["subscription"].to_numpy()
        holds = position > since
        if self._ended:
            made = np.array(sorted(self._ended), dtype=np.int64)
            until = np.array([self._ended[each][1] for each in made.tolist()], dtype=np.int64)
            place = np.minimum(np.searchsorted(made, since), len(made) - 1)
            holds &= (made[place] != since) | (position < until[place])
        return found if holds.all() else found.filter(pa.array(holds))


def open_evaluator_engine() -> duckdb.DuckDBPyConnection:
    """Open the database of an evaluator. Its join order optimizer is off: patterns come in the best order already, and
    DuckDB knows nothing of their selectivity."""
    ensure_recursion_limit()
    return open_engine(EVALUATOR_MEMORY).execute("SET disabled_optimizers = 'join_order'")


SINGLE_SINCE = 0
"""The position at which the subscription is made, so that it sees every event; its matches have it as their id."""


def make_single_evaluator(
    subscription: Subscription, shape: Shape, ontologies: Iterable[RegistryChange] = ()
) -> Evaluator:
    """An evaluator with one subscription alone. `ontologies` are the changes that loaded the current ontologies."""
    evaluator = Evaluator()
    made = RegistryChange(SINGLE_SINCE, SUBSCRIPTION, subscription.id, subscription_to_value(subscription))
    evaluator.apply([*ontologies, RegistryChange(SINGLE_SINCE, SHAPE, shape.key, shape.to_value()), made], SINGLE_SINCE)
    return evaluator


def required_predicates(shape: Shape) -> tuple[str, ...]:
    """The predicates that every matching event has, in order. A query without them may match any event."""
    query = shape.query
    patterns = query.patterns if isinstance(query, Conjunction) else required_patterns(query.where)
    stored = [each.predicate for each in patterns if header_column(each) is None]
    return tuple(sorted({each.term for each in stored if isinstance(each, Const)}))
