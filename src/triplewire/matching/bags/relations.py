"""Relations: which values of a batch are in which relation with which constants, each pair looked at once.

The evaluator decides: a value is an event of one quad, and constants are a subscription to it with the relation as
its
filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa

from triplewire.config import limits
from triplewire.matching.bags.clauses import VALUE
from triplewire.matching.bags.pairings import Int64
from triplewire.matching.evaluator import Evaluator
from triplewire.matching.ontologies import Closures
from triplewire.matching.shapes import Shape
from triplewire.model import ENTRIES, Kind, Subscription
from triplewire.sparql import Apply, Conjunction, Const, Expression, Pattern, Var
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

_AFTER = 2**40
"""The position of the first value: after all constants."""
_FEW = ("=", "in", "below", "strictly", "equivalent", "is_a", "has")
"""Functions that join by equality, and of which a value has few partners."""

_Terms = tuple[str, ...]


@dataclass
class Relations:
    """Conditions on a value, with all constants that they are asked with. Not safe for threads."""

    evaluator: Evaluator
    _known: dict[Expression | None, dict[_Terms, int]] = field(default_factory=dict)
    _shapes: dict[Expression, str] = field(default_factory=dict)
    _terms: dict[int, _Terms] = field(default_factory=dict)
    _count: int = 0

    @classmethod
    def of(cls, duck: duckdb.DuckDBPyConnection, closures: Closures, name: str) -> Relations:
        """With tables in the database whose names begin so. Values are quads as well, and are kept apart from those of
        the batch: temporary tables of a cursor are its own."""
        return cls(Evaluator(duck.cursor().execute("SET disabled_optimizers = 'join_order'"), closures, name))

    def number(self, condition: Expression | None, terms: _Terms) -> int:
        """The number of these constants; without a condition the value must be the constant itself."""
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
        """Forget all constants but those with these numbers, which stay."""
        kept = frozenset(used.tolist())
        for condition, known in self._known.items():
            gone = [terms for terms, number in known.items() if number not in kept]
            for terms in gone:
                self._end(condition, known.pop(terms))
        self.evaluator.forget(_AFTER)

    def pairs(self, condition: Expression | None, values: Int64, texts: pa.Array) -> tuple[Int64, Int64]:
        """Values, by number, and the constants that they are in the relation with; `texts` has the text of each."""
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
        """As many values at once as cannot have too many partners."""
        few = isinstance(condition, Apply) and condition.op in _FEW
        most = len(values) if few else limits.BAG_PAIRS // max(1, len(self._known[condition]))
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
