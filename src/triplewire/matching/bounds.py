"""Bounds: how many rows the joins of a query may have on an event, known from its size alone.

A pattern takes at most the quads of its predicate, patterns together at most all combinations of these. That is far
more than most queries have in the end; but a query and an event below the limit by it are surely harmless.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from functools import reduce

from sqlglot import exp

from triplewire.config.limits import JOIN_ROWS
from triplewire.sparql import Const, Node, Pattern, to_sql
from triplewire.sparql.algebra import Bag, Reach, Union
from triplewire.sparql.compiler.scans import header_column
from triplewire.sparql.sql import Sql, equal, text


@dataclass(frozen=True)
class Bound:
    """`rows` is an aggregate over the quads of an event; with n quads they are about n to the power of `degree`."""

    degree: int
    rows: Sql

    def possible(self, quads: int) -> bool:
        """Whether an event of so many quads can be above the limit."""
        return float(quads) ** min(self.degree, 64) > JOIN_ROWS

    def sql(self) -> str:
        """The positions of the events in `quads` that may be above it."""
        above = to_sql(exp.GT(this=self.rows.copy(), expression=exp.Literal.number(JOIN_ROWS)), "duckdb")
        return f"SELECT position FROM quads GROUP BY position HAVING {above} ORDER BY position"


def bound_of(part: object) -> Bound:
    """Of an operator, with everything inside it."""
    match part:
        case Pattern():
            return _ONE if header_column(part) else _scan(part.predicate)
        case Bag(predicate):
            return _scan(predicate)
        case Reach():
            # Any two nodes of the event may be at its ends.
            return reduce(_times, [_scan(None)] * 2)
        case Union(left, right):
            return _plus(bound_of(left), bound_of(right))
        case tuple():
            return reduce(_times, map(bound_of, part), _ONE)
    if not is_dataclass(part):
        return _ONE
    return reduce(_times, (bound_of(getattr(part, field.name)) for field in fields(part)), _ONE)


_ONE = Bound(0, exp.Literal.number(1))


def _scan(predicate: Node | None) -> Bound:
    counted: Sql = exp.Count(this=exp.Star())
    if isinstance(predicate, Const):
        counted = exp.Filter(
            this=counted, expression=exp.Where(this=equal(exp.column("predicate"), text(predicate.term)))
        )
    least = exp.Greatest(this=counted, expressions=[exp.Literal.number(1)])
    return Bound(1, exp.cast(least, exp.DataType.Type.DOUBLE))


def _times(left: Bound, right: Bound) -> Bound:
    if not left.degree or not right.degree:
        return left if left.degree else right
    return Bound(left.degree + right.degree, exp.Mul(this=left.rows.copy(), expression=right.rows.copy()))


def _plus(left: Bound, right: Bound) -> Bound:
    rows = exp.Paren(this=exp.Add(this=left.rows.copy(), expression=right.rows.copy()))
    return Bound(max(left.degree, right.degree), rows)
