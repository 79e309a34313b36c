"""Lets: values that are computed once and used by name.

SQL has no `let`. A value that a filter computes becomes a column of a derived table around the join, so that the
text of nested arithmetic grows with its size and not with the product of its uses.
"""

from __future__ import annotations

from sqlglot import exp

from triplewire.sparql.compile.sql import Sql, column

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
