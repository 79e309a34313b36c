"""Filters: conditions that Spark hands down, as files that need not be opened and rows that need not leave them.

A file that is passed over has no row that a filter lets through. Rows are chosen by DuckDB, which orders numbers
(NaN
last) and texts (by bytes) as Spark does, so that Spark need not look again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any

from duckdb import ColumnExpression, ConstantExpression, Expression, FunctionExpression
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from triplewire.storage.lake.ports import ColumnRange, DataFile

_COMPARISONS: Mapping[type[Filter], Callable[[Any, Any], Any]] = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}
_FUNCTIONS: Mapping[type[Filter], str] = {
    StringStartsWith: "starts_with",
    StringEndsWith: "suffix",
    StringContains: "contains",
}


@dataclass(frozen=True)
class Condition:
    """A filter on one column of quads. `negated` lets through where it is false; nobody where it is null."""

    filter: Filter
    column: str
    negated: bool = False

    def may_hold(self, file: DataFile) -> bool:
        """False only where no row of the file can pass."""
        bounds = file.ranges.get(self.column)
        if bounds is None:
            return True
        if isinstance(self.filter, IsNull):
            return not self.negated or bounds[0] is not None
        if bounds[0] is None:
            return isinstance(self.filter, IsNotNull) and self.negated
        return self.negated or _overlaps(self.filter, bounds)

    @property
    def expression(self) -> Expression:
        made = _expression(self.filter, ColumnExpression(self.column))
        return ~made if self.negated else made


def condition(given: Filter, columns: Mapping[str, str]) -> Condition | None:
    """What is pushed down, if it can be. `columns` are those of a frame with those of quads that hold the same."""
    inner, negated = (given.child, True) if isinstance(given, Not) else (given, False)
    (name, *rest) = getattr(inner, "attribute", ("",))
    if rest or name not in columns or not _is_known(inner):
        return None
    return Condition(inner, columns[name], negated)


def every(conditions: Iterable[Condition]) -> Expression | None:
    """All of them as one; None if there are none."""
    made = [each.expression for each in conditions]
    return reduce(operator.and_, made) if made else None


def _is_known(given: Filter) -> bool:
    if isinstance(given, In):
        return bool(given.value) and all(map(_is_value, given.value))
    if type(given) in _COMPARISONS or type(given) in _FUNCTIONS:
        return _is_value(getattr(given, "value", None))
    return isinstance(given, IsNull | IsNotNull)


def _is_value(value: object) -> bool:
    """Whether it means the same to DuckDB, and to Python: a time has a zone, and a number is one."""
    if isinstance(value, datetime):
        return value.tzinfo is not None
    return isinstance(value, str | int | float) and value == value


def _expression(given: Filter, column: Expression) -> Expression:
    if isinstance(given, IsNull | IsNotNull):
        return column.isnull() if isinstance(given, IsNull) else column.isnotnull()
    if isinstance(given, In):
        return column.isin(*map(ConstantExpression, given.value))
    constant = ConstantExpression(getattr(given, "value", None))
    if type(given) in _FUNCTIONS:
        return FunctionExpression(_FUNCTIONS[type(given)], column, constant)
    made: Expression = _COMPARISONS[type(given)](column, constant)
    return made


def _overlaps(given: Filter, bounds: ColumnRange) -> bool:
    """Whether a value within the bounds may pass."""
    least, greatest = bounds
    if isinstance(given, In):
        return any(least <= each <= greatest for each in given.value)
    value: Any = getattr(given, "value", None)
    if isinstance(given, StringStartsWith):
        return bool(str(least)[: len(value)] <= value <= str(greatest)[: len(value)])
    if isinstance(given, EqualTo):
        return bool(least <= value <= greatest)
    if isinstance(given, GreaterThan | GreaterThanOrEqual):
        return bool(_COMPARISONS[type(given)](greatest, value))
    if isinstance(given, LessThan | LessThanOrEqual):
        return bool(_COMPARISONS[type(given)](least, value))
    return True
