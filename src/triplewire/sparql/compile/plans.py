"""Plans: relations, the conditions that join and filter them, and values that are computed once and used by name.

SQL has no `let`. A value that a filter computes becomes a column of a derived table around the join, so that the
text of nested arithmetic grows with its size and not with the product of its uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from triplewire.sparql.compile.sql import Sql, column, every

COMPUTED = "x"
"""The alias of the derived table that holds computed values."""


class Lets:
    """Computed values by name, in an order in which each refers only to earlier ones."""

    def __init__(self) -> None:
        self.values: dict[str, Sql] = {}
        self._names: dict[Sql, str] = {}
        self._levels: dict[str, int] = {}

    def bind(self, sql: Sql) -> Sql:
        """A column that holds the value; what is a column or a constant already stays as it is."""
        if isinstance(sql, exp.Column | exp.Literal | exp.Null | exp.Boolean):
            return sql
        if sql not in self._names:
            name = f"x{len(self.values)}"
            self._names[sql] = name
            self.values[name] = sql
            self._levels[name] = 1 + max((self._levels[each] for each in _computed(sql)), default=-1)
        return column(COMPUTED, self._names[sql])

    def levels(self) -> list[list[str]]:
        """The names, those of each level referring only to those of earlier levels."""
        count = max(self._levels.values(), default=-1) + 1
        return [[name for name, at in self._levels.items() if at == level] for level in range(count)]


class Inline(Lets):
    """Names nothing: for places from where a derived table cannot be reached."""

    def bind(self, sql: Sql) -> Sql:
        return sql


@dataclass(frozen=True)
class Plan:
    """What a query reads and demands, before it is said what it gives."""

    conditions: Sequence[Sql]
    lets: Lets = field(default_factory=Lets)

    def columns(self, outputs: Iterable[Sql]) -> list[exp.Column]:
        """Every stored column that is read, once each."""
        parts = (*outputs, *self.conditions, *self.lets.values.values())
        found = (each for part in parts for each in part.find_all(exp.Column))
        return list({(each.table, each.name): each for each in found if each.table != COMPUTED}.values())

    def select(self, outputs: Sequence[Sql], relations: Sequence[exp.Expr]) -> exp.Select:
        """The outputs over the relations. Without computed values it is one flat SELECT."""
        if not self.lets.values:
            return _select(outputs, relations, self.conditions)
        early = [each for each in self.conditions if not uses_computed(each)]
        late = [each for each in self.conditions if uses_computed(each)]
        carried = [exp.alias_(each, f"{each.table}_{each.name}") for each in self.columns(outputs)]
        # constants alone read no column, and a SELECT must name one
        carried = carried or [exp.alias_(exp.null(), "nothing")]
        inner = _select(carried, relations, early)
        for names in self.lets.levels():
            made = [exp.alias_(outside(self.lets.values[name]), name) for name in names]
            inner = _select([exp.Star(), *made], [inner.subquery(COMPUTED, copy=False)], ())
        around = [inner.subquery(COMPUTED, copy=False)]
        return _select([outside(each) for each in outputs], around, [outside(each) for each in late])


def _select(outputs: Sequence[Sql], relations: Sequence[exp.Expr], conditions: Sequence[Sql]) -> exp.Select:
    """Built without the copies that sqlglot makes by default; they would take most of the time of compiling."""
    select = exp.Select(expressions=list(outputs))
    for index, relation in enumerate(relations):
        if index == 0:
            select.from_(relation, copy=False)
        else:
            select.join(relation, join_type="cross", copy=False)
    return select.where(every(*conditions), copy=False) if conditions else select


def _computed(sql: Sql) -> list[str]:
    return [each.name for each in sql.find_all(exp.Column) if each.table == COMPUTED]


def uses_computed(sql: Sql) -> bool:
    return bool(_computed(sql))


def outside(sql: Sql) -> Sql:
    """The same, as the derived table names the columns of the relations inside it."""
    return sql.transform(_renamed)


def _renamed(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Column) and node.table != COMPUTED:
        return column(COMPUTED, f"{node.table}_{node.name}")
    return node
