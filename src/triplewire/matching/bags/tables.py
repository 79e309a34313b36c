"""Tables of subscriptions with bags, all of one shape, and how a batch is matched against them.

1. Each value of the batch is compared once with each constant, by the evaluator: its *partners*.
2. The most selective clause is chosen: subscriptions that have a partner of its values are the candidates.
3. Candidates are decided clause by clause: the number of values, whether each has a partner, and at last whether they
   can be paired one to one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa

from triplewire.kernels.arrays import Int64
from triplewire.matching.bags.clauses import COLUMNS, VALUE, BagBatch, BagClause, read_batch, split_clauses
from triplewire.matching.bags.pairing import BAG_LATE_ROWS, BagTest, Partners, Postings, SubscriptionRows, match_pairs
from triplewire.matching.evaluator import Evaluator
from triplewire.matching.shapes import Shape
from triplewire.matching.tables import ConstantTable, OntologyClosure, SubscriptionTable, make_plain_table
from triplewire.model import ENTRIES, Kind, Subscription
from triplewire.sparql import Apply, Conjunction, Const, Expression, Pattern, Var
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

BAG_PAIRS: Final = 4_000_000
"""Values of a batch times constants of bags that are compared at once if most may be related, as with `!=`: some 100
MB."""


_AFTER = 2**40
"""The position of the first value, after those of all constants."""
_FEW = ("=", "in", "below", "strictly", "equivalent", "is_a", "has")
"""Functions that join by equality and give a value few partners."""

_Terms = tuple[str, ...]


@dataclass
class ValueRelations:
    """Conditions on a value, with all constants that they are asked with. A value becomes an event of one quad, and
    constants a subscription whose filter is the condition, so the evaluator decides. Not thread-safe."""

    evaluator: Evaluator
    pairs_at_once: int = BAG_PAIRS
    _known: dict[Expression | None, dict[_Terms, int]] = field(default_factory=dict)
    _shapes: dict[Expression, str] = field(default_factory=dict)
    _terms: dict[int, _Terms] = field(default_factory=dict)
    _count: int = 0

    @classmethod
    def of(cls, duck: duckdb.DuckDBPyConnection, closures: OntologyClosure, name: str, pairs: int) -> ValueRelations:
        """Make relations whose tables have names with this prefix. They use a cursor of their own, because temporary
        tables belong to a cursor, and the quads of values must not mix with those of the batch."""
        cursor = duck.cursor().execute("SET disabled_optimizers = 'join_order'")
        return cls(Evaluator(cursor, closures, name), pairs)

    def number(self, condition: Expression | None, terms: _Terms) -> int:
        """The number of these constants; without a condition the value must equal the constant itself."""
        known = self._known.setdefault(condition, {})
        if terms not in known:
            known[terms] = self._count
            self._terms[self._count] = terms
            self._count += 1
            if condition is not None:
                self._tell(condition, terms, known[terms])
        return known[terms]

    def terms(self, number: int) -> _Terms:
        """The constants of a number."""
        return self._terms[number]

    def keep(self, used: Int64) -> None:
        """Forget all constants but those with these numbers."""
        kept = frozenset(used.tolist())
        for condition, known in self._known.items():
            gone = [terms for terms, number in known.items() if number not in kept]
            for terms in gone:
                self._end(condition, known.pop(terms))
        self.evaluator.forget(_AFTER)

    def pairs(self, condition: Expression | None, values: Int64, texts: pa.Array) -> tuple[Int64, Int64]:
        """Values, by number, and the constants that each is related to; `texts` has the text of each value."""
        if condition is None:
            return self._same(values, texts.to_pylist())
        found = [self._asked(condition, *part) for part in self._portions(condition, values, texts)]
        return np.concatenate([left for left, _ in found]), np.concatenate([right for _, right in found])

    def _tell(self, condition: Expression, terms: _Terms, number: int) -> None:
        changes = list[RegistryChange]()
        if condition not in self._shapes:
            shape = _shape(condition)
            self._shapes[condition] = shape.key
            changes.append(RegistryChange(0, SHAPE, shape.key, shape.to_value()))
        made = Subscription(str(number), None, Kind.SIGNAL, self._shapes[condition], terms)
        changes.append(RegistryChange(number + 1, SUBSCRIPTION, made.id, subscription_to_value(made)))
        self.evaluator.apply(changes, number + 1)

    def _end(self, condition: Expression | None, number: int) -> None:
        del self._terms[number]
        if condition is not None:
            self.evaluator.apply([RegistryChange(self._count, SUBSCRIPTION, str(number), None)], self._count)

    def _same(self, values: Int64, texts: Sequence[str]) -> tuple[Int64, Int64]:
        known = self._known.get(None, {})
        found = np.array([known.get((text,), -1) for text in texts], np.int64)
        return values[found >= 0], found[found >= 0]

    def _portions(self, condition: Expression, values: Int64, texts: pa.Array) -> Iterator[tuple[Int64, pa.Array]]:
        """Split values into parts that cannot have too many partners."""
        few = isinstance(condition, Apply) and condition.op in _FEW
        most = len(values) if few else self.pairs_at_once // max(1, len(self._known[condition]))
        for start in range(0, max(1, len(values)), max(1, most)):
            yield values[start : start + max(1, most)], texts.slice(start, max(1, most))

    def _asked(self, condition: Expression, values: Int64, texts: pa.Array) -> tuple[Int64, Int64]:
        found = self.evaluator.match(_entries(values, texts), [self._shapes[condition]])
        if found["limit"].null_count < found.num_rows:
            raise duckdb.InterruptException("a value and a constant alone were too much")
        return found["position"].to_numpy() - _AFTER, found["subscription"].to_numpy() - 1


def _shape(condition: Expression) -> Shape:
    pattern = Pattern(Var("event"), Const("<urn:triplewire:value>"), VALUE)
    return Shape(Conjunction("ask", (pattern,), (condition,)), solutions=False)


def _entries(values: Int64, texts: pa.Array) -> pa.Table:
    start, count = "<urn:triplewire:event>\t<urn:triplewire:value>\t", len(values)
    given = {
        "position": pa.array(values + _AFTER),
        "text": pa.array([start + each for each in texts.to_pylist()], pa.string()),
        **{name: pa.array([""] * count, pa.string()) for name in ("stream", "event", "syntax")},
        **{name: pa.array(np.zeros(count, np.int64)) for name in ("time", "received")},
    }
    columns = [given[each.name] if each.name in given else pa.nulls(count, each.type) for each in ENTRIES]
    return pa.Table.from_arrays(columns, schema=ENTRIES)


@dataclass(frozen=True)
class BagLimits:
    pairs: int = BAG_PAIRS
    late_rows: int = BAG_LATE_ROWS


DEFAULT_LIMITS = BagLimits()


def make_table(
    duck: duckdb.DuckDBPyConnection,
    closures: OntologyClosure,
    shape: Shape,
    name: str,
    limits: BagLimits = DEFAULT_LIMITS,
) -> SubscriptionTable:
    """The table of a shape: a `BagTable` if its clauses can be decided one by one."""
    found = split_clauses(shape)
    if found is None:
        return make_plain_table(duck, closures, shape, name)
    return BagTable(duck, closures, shape, found, name, limits)


class BagTable:
    """Subscriptions of one shape with bags. Not thread-safe."""

    columns = COLUMNS
    lists = False

    def __init__(
        self,
        duck: duckdb.DuckDBPyConnection,
        closures: OntologyClosure,
        shape: Shape,
        parts: Sequence[BagClause],
        name: str,
        limits: BagLimits = DEFAULT_LIMITS,
    ) -> None:
        self._duck, self._shape, self._name, self._parts, self._limits = duck, shape, name, parts, limits
        self._relations = ValueRelations.of(duck, closures, name, limits.pairs)
        self._kinds = [*dict.fromkeys(element.relation for part in parts for element in part.elements)]
        self._elements = [element for part in parts for element in part.elements]
        sizes = np.cumsum([0, *(len(part.elements) for part in parts)])
        self._first, self._how = sizes.astype(np.int64), np.array([part.how for part in parts], np.int64)
        self._added = dict[int, tuple[int, ...]]()
        self._since = np.zeros(0, np.int64)
        self._postings = Postings(np.zeros((0, len(self._elements)), np.int32), limits.late_rows)

    @property
    def columns_alone(self) -> frozenset[str]:
        return self._general.columns

    def add(self, subscription: Subscription) -> None:
        given = subscription.constants
        self._added[subscription.since] = tuple(
            [
                self._relations.number(each.relation, tuple([given[place] for place in each.constants_at]))
                for each in self._elements
            ]
        )

    def remove(self, gone: Sequence[int]) -> None:
        if self.prepare():
            kept = ~np.isin(self._since, np.array(gone, np.int64))
            self._since = self._since[kept]
            self._postings = Postings(self._postings.rows[kept], self._limits.late_rows)
            self._relations.keep(np.unique(self._postings.rows))

    def prepare(self) -> bool:
        if self._added:
            rows = np.array([*self._added.values()], np.int32).reshape(len(self._added), -1)
            self._since = np.concatenate([self._since, np.array([*self._added], np.int64)])
            self._postings = self._postings.with_rows(rows)
            self._added = {}
        return len(self._since) > 0

    def match_into(self, table: str, *, plain: bool) -> None:
        given = read_batch(self._duck, self._parts)
        if not len(given.positions):
            return
        partners, rows = self._partners(given), SubscriptionRows(self._postings.rows, self._first, self._how)
        for event, row in self._candidates(given, partners):
            holds = match_pairs(event, row, given.values, partners, rows)
            found = {"position": given.positions[event[holds]], "subscription": self._since[row[holds]]}
            self._duck.register("paired", pa.table(found))
            self._duck.execute(f"INSERT INTO {table} (position, subscription) SELECT * FROM paired")
            self._duck.unregister("paired")

    def heavy(self, quads: int) -> Sequence[int]:
        """No events are heavy, because nothing is joined."""
        return ()

    def alike(self) -> dict[int, list[int]]:
        _, same = np.unique(self._postings.rows, axis=0, return_inverse=True)
        groups = defaultdict[int, list[int]](list)
        for number, since in zip(same.reshape(-1).tolist(), self._since.tolist(), strict=True):
            groups[number].append(since)
        return {made[0]: made for made in groups.values()}

    def match_some(self, table: str, made: Sequence[int]) -> None:
        """Match through a general table, a few at a time if all together are too much: it has limits."""
        self._general_of(made).match_some(table, made)

    def probe(self, made: int) -> int:
        return self._general_of([made]).probe(made)

    @cached_property
    def _general(self) -> ConstantTable:
        return ConstantTable(self._duck, self._shape, f"{self._name}_general")

    def _general_of(self, made: Sequence[int]) -> ConstantTable:
        """A general table of these subscriptions alone."""
        self._general.remove([*self._general.alike()] if self._general.prepare() else [])
        for place in np.flatnonzero(np.isin(self._since, np.array(made, np.int64))).tolist():
            constants = self._constants(self._postings.rows[place].tolist())
            since = int(self._since[place])
            self._general.add(Subscription("", None, Kind.SIGNAL, self._shape.key, constants, since=since))
        self._general.prepare()
        return self._general

    def _constants(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """The constants of the shape, in their original order."""
        found = dict[int, str]()
        for element, number in zip(self._elements, numbers, strict=True):
            found |= zip(element.constants_at, self._relations.terms(number), strict=True)
        return tuple(found[place] for place in sorted(found))

    def _partners(self, given: BagBatch) -> Partners:
        """Each value with the constants of the relations that it is compared in."""
        left, right = list[Int64](), list[Int64]()
        for kind in self._kinds:
            clauses = [
                at for at, part in enumerate(self._parts) if any(each.relation == kind for each in part.elements)
            ]
            values = np.unique(np.concatenate([_clause_values(given, clause) for clause in clauses])).astype(np.int64)
            found = self._relations.pairs(kind, values, given.texts.take(pa.array(values)))
            left.append(found[0])
            right.append(found[1])
        value, constant = np.concatenate(left or [_NONE]), np.concatenate(right or [_NONE])
        order = np.lexsort((constant, value))
        counts = np.bincount(value, minlength=len(given.texts))
        return Partners(np.concatenate([_ZERO, np.cumsum(counts)]).astype(np.int64), constant[order].astype(np.int32))

    def _candidates(self, given: BagBatch, partners: Partners) -> Iterator[tuple[Int64, Int64]]:
        """Pairs of event and subscription, each once, among which all matches are; some at a time."""
        ways = [way for clause in range(len(self._parts)) for way in self._ways(given, clause)]
        best = min(ways, key=lambda way: way.cost(partners, self._postings), default=None)
        events, rows = given.values.events, len(self._since)
        every = events * rows
        cost = every if best is None else min(every, best.cost(partners, self._postings))
        step = max(1, events * self._limits.pairs // max(1, cost))
        for first in range(0, events, step):
            some = np.arange(first, min(events, first + step))
            if best is None or cost == every:
                yield np.repeat(some, rows), np.tile(np.arange(rows), len(some))
            else:
                part = best.of(some[0], some[-1])
                yield self._postings.candidates(part.event, part.value, part.columns, partners, some)

    def _ways(self, given: BagBatch, clause: int) -> Iterator[AccessPath]:
        how, columns = self._how[clause], range(self._first[clause], self._first[clause + 1])
        start = given.values.start[clause * given.values.events : (clause + 1) * given.values.events + 1]
        counts = np.diff(start)
        if how == BagTest.SUB:
            # Each value needs a partner, so one value's partners suffice; an empty bag is a part of every other.
            if (counts > 0).all():
                yield AccessPath(np.arange(len(counts)), given.values.value[start[:-1]], [*columns])
            return
        event = np.repeat(np.arange(len(counts)), counts)
        for column in columns:
            yield AccessPath(event, given.values.value[start[0] : start[-1]], [column])


@dataclass(frozen=True)
class AccessPath:
    """Values of events, one of which must have a partner in one of the columns."""

    event: Int64
    value: np.ndarray
    columns: list[int]

    def of(self, first: int, last: int) -> AccessPath:
        """The access path for some events alone."""
        some = (self.event >= first) & (self.event <= last)
        return AccessPath(self.event[some], self.value[some], self.columns)

    def cost(self, partners: Partners, postings: Postings) -> int:
        """An upper bound of the number of candidates."""
        return postings.cost(self.value, self.columns, partners)


_NONE, _ZERO = np.zeros(0, np.int64), np.zeros(1, np.int64)


def _clause_values(given: BagBatch, clause: int) -> np.ndarray:
    events = given.values.events
    return given.values.value[given.values.start[clause * events] : given.values.start[(clause + 1) * events]]
