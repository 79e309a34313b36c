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
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.matching.plans import EVENT_COLUMNS, SOLUTIONS
from triplewire.matching.shapes import Shape
from triplewire.matching.tables import OntologyClosure, SubscriptionTable, TableFactory, make_plain_table
from triplewire.matching.visibility import redact_entries
from triplewire.model import MATCHES, LimitReached, Subscription
from triplewire.model.errors import QueryLimit
from triplewire.model.events import drop_opaque_payloads
from triplewire.security.visibility import Visibility
from triplewire.sparql import Conjunction, explode, needs_exact_comparison, to_sql
from triplewire.sparql.algebra import Const, header_column
from triplewire.sparql.compiler.subscriptions import required_patterns
from triplewire.sparql.cpu_limit import LIMIT_ERRORS, CpuLimit
from triplewire.sparql.dialects.duckdb import register_functions
from triplewire.sparql.queries import ensure_recursion_limit
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import (
    SHAPE,
    SUBSCRIPTION,
    subscription_from_change,
    subscription_to_value,
)

BATCH_CPU_SECONDS: Final = 10.0
"""CPU time of the evaluator for one shape on one batch. What takes longer is cut in two, and again."""

EVENT_CPU_SECONDS: Final = 0.005
"""CPU time for one shape on an event of those looked at apart, as long as they are taken together: what one by one
takes anyway."""

PAIR_CPU_SECONDS: Final = 2.0
"""CPU time of the evaluator for one subscription on one event: about a hundred million rows of a join. Whoever is not
decided then is told so."""

EVALUATOR_MEMORY: Final = "2GB"
"""Memory of the evaluator of one worker, its tables of constants included. Nothing is spilled to the disk."""


# Portions: a batch against the subscriptions of some shapes, at once where that is bearable, else in parts.
#
# ```
# batch ──▶ events with bearable joins ──── all at once ──── too much? in halves ───┐
#       └─▶ the others ──────────────────── all at once ──── too much? in halves ───┴─▶ one event
#                                                                                          │
#        limit ◀── too much, or too many? ── one subscription ◀── in halves ◀── too much? ─┘
# ```
#
# So a subscription that is too much on an event is found, and told so; all others are answered as if it were not
# there.

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


class BudgetExhausted(QueryLimit):
    """A shape took all the time that there is for it, and is given up."""

    def __init__(self, shape: str) -> None:
        super().__init__("the query takes too much time")
        self.shape = shape


@dataclass(frozen=True)
class CpuBudget:
    """CPU seconds: for one shape on a batch; on each event of those that are looked at apart; for one subscription on
    one event; and for one shape in all, in whatever parts, after which it is given up."""

    batch: float = BATCH_CPU_SECONDS
    event: float = EVENT_CPU_SECONDS
    pair: float = PAIR_CPU_SECONDS
    whole: float = math.inf


DEFAULT_BUDGET = CpuBudget()


@dataclass(frozen=True)
class BatchSplitter:
    """Works in a connection, in which it has the tables `quads` and `found`."""

    duck: duckdb.DuckDBPyConnection
    patience: CpuBudget = DEFAULT_BUDGET
    clock: Callable[[], float] = time.thread_time
    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """The seconds that each shape took."""

    def match(self, entries: pa.Table, shapes: Mapping[str, SubscriptionTable]) -> pa.Table:
        """The matches of a batch of `ENTRIES`, as a `MATCHES` table sorted by position and subscription. Raises
        Exhausted."""
        plain = self._load(entries, frozenset().union(*(each.columns for each in shapes.values())))
        longest = 1 + (pc.max(pc.count_substring(entries["text"], "\n")).as_py() or 0)
        apart = dict[str, Sequence[int]]()
        with CpuLimit(self.duck, self.patience.batch) as allowance:
            for key, each in shapes.items():
                allowance.renew()
                with self._counted(key):
                    heavy = self._at_once(each, longest, plain=plain)
                if heavy is not None:
                    apart[key] = heavy
        found = [self._found()]
        for key, heavy in apart.items():
            found += self._bearable(key, self._apart(shapes[key], entries, heavy))
        return found[0] if len(found) == 1 else merge_matches(found)

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
                raise BudgetExhausted(key)
            with self._counted(key):
                part = next(parts, None)
            if part is None:
                return
            yield part

    def _at_once(self, shape: SubscriptionTable, longest: int, *, plain: bool) -> Sequence[int] | None:
        """None where that was bearable; else the events for which it may not be, as far as they are known."""
        heavy: Sequence[int] = ()
        try:
            heavy = shape.heavy(longest)
            if heavy:
                return heavy
            shape.match_into("found", plain=plain)
        except LIMIT_ERRORS:
            return heavy
        return None

    def _apart(self, shape: SubscriptionTable, entries: pa.Table, heavy: Sequence[int]) -> Iterator[pa.Table]:
        """Those events that may be too much, and the others."""
        among = pc.is_in(entries["position"], pa.array(heavy, pa.int64()))
        yield from self._portion(shape, entries.filter(pc.invert(among)), self.patience.batch)
        yield from self._portion(shape, entries.filter(among), _LEAST_SECONDS)

    def _portion(self, shape: SubscriptionTable, entries: pa.Table, least: float) -> Iterator[pa.Table]:
        count = entries.num_rows
        if count == 1:
            yield self._single(shape, entries)
        elif count:
            plain = self._load(entries, shape.columns)
            try:
                with CpuLimit(self.duck, max(least, count * self.patience.event)):
                    shape.match_into("found", plain=plain)
                yield self._found()
            except LIMIT_ERRORS:
                yield from self._portion(shape, entries.slice(0, count // 2), least)
                yield from self._portion(shape, entries.slice(count // 2), least)

    def _single(self, shape: SubscriptionTable, entry: pa.Table) -> pa.Table:
        """One event. Subscriptions with equal constants are one."""
        self._load(entry, shape.columns_alone | EVENT_COLUMNS)
        same = shape.alike()
        self._some(shape, [*same])
        found = self._found()
        rows = [(row, each) for row, first in enumerate(found["subscription"].to_pylist()) for each in same[first]]
        told = found.take(pa.array([row for row, _ in rows], pa.int64()))
        names = pa.array([each for _, each in rows], pa.int64())
        return told.set_column(1, MATCHES.field("subscription"), names)

    def _some(self, shape: SubscriptionTable, made: Sequence[int]) -> None:
        """Some subscriptions, by where they were made, on the one event that there is."""
        if len(made) == 1:
            self._pair(shape, made[0])
            return
        try:
            with CpuLimit(self.duck, self.patience.pair):
                shape.match_some("found", made)
        except LIMIT_ERRORS:
            self._some(shape, made[: len(made) // 2])
            self._some(shape, made[len(made) // 2 :])

    def _pair(self, shape: SubscriptionTable, made: int) -> None:
        """One subscription on one event: it is told what there is, or which limit it reached."""
        try:
            with CpuLimit(self.duck, self.patience.pair):
                self._tell(shape, made, shape.probe(made))
        except LIMIT_ERRORS:
            self.duck.execute(_ALONE, [made, LimitReached.WORK.value])

    def _tell(self, shape: SubscriptionTable, made: int, count: int) -> None:
        if count > SOLUTIONS:
            self.duck.execute(_ALONE, [made, LimitReached.SOLUTIONS.value])
        elif count and shape.lists:
            shape.match_some("found", [made])
        elif count:
            self.duck.execute(_ALONE, [made, None])

    def _load(self, entries: pa.Table, columns: frozenset[str]) -> bool:
        """The events as the table `quads`, nothing as the table `found`; whether doubles tell all numbers apart."""
        self.duck.execute(_FOUND)
        self.duck.register("entries", entries)
        self.duck.execute(f"CREATE OR REPLACE TEMP TABLE quads AS {_explode_sql(columns)}")
        self.duck.unregister("entries")
        if "quad" in columns:
            self.duck.execute(_EVENTS)
        return not {"object", "object_number"} <= columns or self.duck.execute(_INVOLVED).fetchall() == [(0,)]

    def _found(self) -> pa.Table:
        return pa.table(self.duck.sql(_SORTED)).cast(MATCHES)


def merge_matches(found: Sequence[pa.Table]) -> pa.Table:
    """Matches of several kinds, in the order of all."""
    return pa.concat_tables(found).sort_by([("position", "ascending"), ("subscription", "ascending")])


@lru_cache(maxsize=64)
def _explode_sql(columns: frozenset[str]) -> str:
    return to_sql(explode("entries", columns=columns), "duckdb")


# Any subscription is SQL: one query for each shape, self-joins inside the event, and a join with the table of
# constants of the shape's subscriptions. DuckDB runs it over a whole batch of events at once. What it finds is then
# held against the positions between which each subscription holds, so that a batch is matched against the registry as
# it was at each of its events.


@dataclass
class Evaluator:
    """Subscriptions as tables, kept up by registry changes; matches batches of events against them.

    Not safe for threads: one evaluator belongs to one worker. `version` is the position up to which registry changes
    have been applied; matching a batch that ends later than that would miss subscriptions.
    """

    _duck: duckdb.DuckDBPyConnection = field(default_factory=lambda: connect_duckdb())
    _closures: OntologyClosure | None = None
    """Of the connection, where it has several evaluators; they tell their tables apart by name."""
    _name: str = "constants"
    _patience: CpuBudget = field(default_factory=CpuBudget)
    _making: TableFactory = make_plain_table
    _clock: Callable[[], float] = time.thread_time
    version: int = 0
    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """The CPU seconds that shapes took, until somebody clears it."""
    _shapes: dict[str, SubscriptionTable] = field(default_factory=dict)
    _sights: dict[str, Visibility | None] = field(default_factory=dict)
    _members: dict[str, tuple[str, int]] = field(default_factory=dict)
    _ended: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Where subscriptions were made → their shape, and where they ended; in the order in which they ended."""

    def __post_init__(self) -> None:
        self._ontologies = self._closures or OntologyClosure(self._duck)

    def apply(self, changes: Iterable[RegistryChange], upto: int) -> None:
        """Take in registry changes, in order; afterwards the evaluator speaks for positions up to `upto`."""
        for change in changes:
            if change.kind == SHAPE and change.value is not None and change.key not in self._shapes:
                shape, name = Shape.from_value(change.value), f"{self._name}_{change.key}"
                self._shapes[change.key] = self._making(self._duck, self._ontologies, shape, name)
                self._sights[change.key] = shape.sight
            elif change.kind == SUBSCRIPTION:
                self._change_member(change)
            else:
                self._ontologies.apply(change)
        self.version = upto

    def match(self, entries: pa.Table, shapes: Collection[str] | None = None) -> pa.Table:
        """The matches of a batch of `ENTRIES`, as a `MATCHES` table sorted by position and subscription; of all
        shapes, or of some. What is no RDF matches nothing."""
        entries = drop_opaque_payloads(entries)
        asked = self._shapes if shapes is None else {key: self._shapes[key] for key in shapes}
        live = {key: each for key, each in asked.items() if each.prepare()}
        if not live or not entries.num_rows:
            return MATCHES.empty_table()
        self._ontologies.prepare()
        portions = BatchSplitter(self._duck, self._patience, self._clock, self.spent)
        found = [portions.match(redact_entries(entries, sight), part) for sight, part in self._by_sight(live)]
        return self.holding(found[0] if len(found) == 1 else merge_matches(found))

    def _by_sight(
        self, live: Mapping[str, SubscriptionTable]
    ) -> Iterable[tuple[Visibility | None, dict[str, SubscriptionTable]]]:
        parts = defaultdict[Visibility | None, dict[str, SubscriptionTable]](dict)
        for key, each in live.items():
            parts[self._sights[key]][key] = each
        return parts.items()

    def forget(self, before: int) -> int:
        """Drop subscriptions that ended below a position; no later batch can concern them. Where the last of them
        ended, or 0."""
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

    def holding(self, found: pa.Table) -> pa.Table:
        """Those matches whose subscription was made before the event and ended after it."""
        position, since = found["position"].to_numpy(), found["subscription"].to_numpy()
        holds = position > since
        if self._ended:
            made = np.array(sorted(self._ended), dtype=np.int64)
            until = np.array([self._ended[each][1] for each in made.tolist()], dtype=np.int64)
            place = np.minimum(np.searchsorted(made, since), len(made) - 1)
            holds &= (made[place] != since) | (position < until[place])
        return found if holds.all() else found.filter(pa.array(holds))


def connect_duckdb() -> duckdb.DuckDBPyConnection:
    """One thread, because Spark runs one task a core; nothing is loaded from outside. Patterns come in the order in
    which they are best joined, which DuckDB, knowing nothing of selectivity, would only spoil."""
    ensure_recursion_limit()
    config: dict[str, Any] = {"threads": 1, "memory_limit": EVALUATOR_MEMORY, "temp_directory": ""}
    duck = duckdb.connect(config={**config, "autoload_known_extensions": False})
    register_functions(duck)
    return duck.execute("SET disabled_optimizers = 'join_order'")


# Solos: one subscription alone, to be asked of events that came before it.

SINGLE_SINCE = 0
"""The position at which it is made up, so that it sees every event; its matches name it by this."""


def make_single_evaluator(
    subscription: Subscription, shape: Shape, ontologies: Iterable[RegistryChange] = ()
) -> Evaluator:
    """An evaluator that knows this one subscription. `ontologies` are the changes that loaded those which count."""
    evaluator = Evaluator()
    made = RegistryChange(SINGLE_SINCE, SUBSCRIPTION, subscription.id, subscription_to_value(subscription))
    evaluator.apply([*ontologies, RegistryChange(SINGLE_SINCE, SHAPE, shape.key, shape.to_value()), made], SINGLE_SINCE)
    return evaluator


def required_predicates(shape: Shape) -> tuple[str, ...]:
    """Those that an event surely has if it matches, in order. What has none may match any event."""
    query = shape.query
    patterns = query.patterns if isinstance(query, Conjunction) else required_patterns(query.where)
    stored = [each.predicate for each in patterns if header_column(each) is None]
    return tuple(sorted({each.term for each in stored if isinstance(each, Const)}))
