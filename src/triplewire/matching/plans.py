"""Match plans: the SQL that matches the subscriptions of a shape against a batch of quads, and an upper bound of its
join sizes.

The bound follows from an event's size alone: a pattern takes at most the quads of its predicate, patterns together at
most all combinations of these. Most queries have far fewer rows; but a query and an event below the limit are
harmless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, reduce
from typing import Final, TypeAlias

from sqlglot import exp

from triplewire.matching.shapes import Shape
from triplewire.model import LimitReached
from triplewire.sparql import (
    Conjunction,
    algebra,
    compile_event,
    compile_subscription,
    facets_used,
    params_with_facets,
    to_sql,
)
from triplewire.sparql.algebra import Const, Node, Param, Pattern, Query
from triplewire.sparql.sql import Sql, equal, text

SOLUTIONS: Final = 10_000
"""Solutions of one subscription on one event that a notification may have, some 2 MB. If there are more, it has none
but says so. They are counted before DISTINCT, OFFSET and LIMIT if a query is patterns and filters alone."""

JOIN_ROWS: Final = 1_000_000
"""Combinations of quads of an event for the patterns of a subscription, by their predicates alone. An event that has
more is matched apart from its batch, with a smaller CPU budget."""


@dataclass(frozen=True)
class JoinBound:
    """An upper bound of join sizes. `rows` is an aggregate over the quads of an event; for n quads it is about n to
    the power of `degree`."""

    degree: int
    rows: Sql

    def possible(self, quads: int) -> bool:
        """Can an event with so many quads exceed the limit?"""
        return float(quads) ** min(self.degree, 64) > JOIN_ROWS

    def sql(self) -> str:
        """SQL for the positions of the events in `quads` that may exceed the limit."""
        above = to_sql(exp.GT(this=self.rows.copy(), expression=exp.Literal.number(JOIN_ROWS)), "duckdb")
        return f"SELECT position FROM quads GROUP BY position HAVING {above} ORDER BY position"


def bound_join(part: object) -> JoinBound:
    """The bound for an operator with everything inside it."""
    match part:
        case Pattern():
            return _ONE if algebra.header_column(part) else _scan(part.predicate)
        case algebra.Bag(predicate):
            return _scan(predicate)
        case algebra.Reach():
            # Any two nodes of the event may be the ends of the path.
            return reduce(_times, [_scan(None)] * 2)
        case algebra.Union(left, right):
            one, other = bound_join(left), bound_join(right)
            rows = exp.Paren(this=exp.Add(this=one.rows.copy(), expression=other.rows.copy()))
            return JoinBound(max(one.degree, other.degree), rows)
        case tuple():
            return reduce(_times, map(bound_join, part), _ONE)
    if not is_dataclass(part):
        return _ONE
    return reduce(_times, (bound_join(getattr(part, field.name)) for field in fields(part)), _ONE)


_ONE = JoinBound(0, exp.Literal.number(1))


def _scan(predicate: Node | None) -> JoinBound:
    counted: Sql = exp.Count(this=exp.Star())
    if isinstance(predicate, Const):
        counted = exp.Filter(
            this=counted, expression=exp.Where(this=equal(exp.column("predicate"), text(predicate.term)))
        )
    least = exp.Greatest(this=counted, expressions=[exp.Literal.number(1)])
    return JoinBound(1, exp.cast(least, exp.DataType.Type.DOUBLE))


def _times(left: JoinBound, right: JoinBound) -> JoinBound:
    if not left.degree or not right.degree:
        return left if left.degree else right
    return JoinBound(left.degree + right.degree, exp.Mul(this=left.rows.copy(), expression=right.rows.copy()))


EVENT_COLUMNS = frozenset({"position", "quad", "graph", "stream", "source", "application", "time", "received"})
"""The columns of `quads` that the view `events` needs."""


def make_plan(shape: Shape) -> MatchPlan:
    return GeneralPlan(shape, shape.query) if isinstance(shape.query, Query) else ConjunctionPlan(shape, shape.query)


@dataclass(frozen=True)
class ConjunctionPlan:
    """The plan of a conjunction: solutions are numbers of quads."""

    shape: Shape
    query: Conjunction

    @property
    def lists(self) -> bool:
        """Whether solutions are listed: the subscription asks for them, and the query has bindings."""
        return self.shape.solutions

    @cached_property
    def _read(self) -> tuple[frozenset[str], Mapping[int, frozenset[str]]]:
        """The columns and facets of the variant that reads most. The compiled query is dropped: there may be
        thousands of shapes."""
        compiled = compile_event(self.query, solutions=True)
        return facets_used(compiled), params_with_facets(compiled)

    @property
    def columns(self) -> frozenset[str]:
        """The columns of `quads` that are read, directly or through `events`."""
        return self._read[0]

    @property
    def facets(self) -> Mapping[int, frozenset[str]]:
        """The columns of each parameter that are read: `term` for its text, else names of facets."""
        return self._read[1]

    @property
    def naming(self) -> Mapping[int, Sequence[str]]:
        """The columns of constants in each pattern that can be joined first."""
        found = {number: _constant_columns(pattern) for number, pattern in enumerate(self.query.patterns)}
        return {number: names for number, names in found.items() if names}

    def sql(self, table: str, *, plain: bool, first: int | None) -> str:
        """SQL for the matches as `position, subscription, solutions, terms, limit`. `plain` says that doubles tell
        all numbers apart, `first` is the pattern to join with the constants first."""
        compiled = compile_event(self.query, solutions=self.shape.solutions, plain=plain, first=first)
        if not self.shape.solutions:
            return _match_sql(compiled, table, "NULL, NULL, NULL")
        kept, limit = _limit_column("solutions", len(self.query.patterns))
        return _match_sql(compiled, table, f"{kept}, NULL, {limit}")

    def alone(self, table: str) -> str:
        """The same SQL for a single event and subscription."""
        return self.sql(table, plain=False, first=None)

    def probe(self, table: str) -> str:
        """SQL for the number of solutions, up to one more than a notification may have, or up to one if solutions
        are not asked for. For a single event and subscription."""
        return _probe_sql(compile_event(self.query, solutions=self.shape.solutions), table, self.shape.solutions)

    @cached_property
    def bound(self) -> JoinBound:
        return bound_join(algebra.Basic(self.query.patterns))


@dataclass(frozen=True)
class GeneralPlan:
    """The plan of a general shape, with the same methods: solutions are terms."""

    shape: Shape
    query: Query

    @property
    def lists(self) -> bool:
        return self.shape.solutions and self.query.form == "select"

    @cached_property
    def _compiled(self) -> exp.Query:
        return compile_subscription(self.query, solutions=self.lists, stream=self.shape.stream)

    @cached_property
    def columns(self) -> frozenset[str]:
        events = any(each.name == "events" for each in self._compiled.find_all(exp.Table))
        # Join bounds count predicates, also those of parts that the compiled query leaves out.
        return facets_used(self._compiled) | {"position", "quad", "predicate"} | (EVENT_COLUMNS if events else set())

    @cached_property
    def facets(self) -> Mapping[int, frozenset[str]]:
        return params_with_facets(self._compiled)

    @property
    def naming(self) -> Mapping[int, Sequence[str]]:
        return {}

    def sql(self, table: str, *, plain: bool, first: int | None) -> str:
        return self._match(self._compiled, table)

    def alone(self, table: str) -> str:
        return self._match(self._compiled_alone(), table)

    def probe(self, table: str) -> str:
        return _probe_sql(self._compiled_alone(), table, self.lists)

    def _compiled_alone(self) -> exp.Query:
        return compile_subscription(self.query, solutions=self.lists, stream=self.shape.stream, alone=True)

    def _match(self, compiled: exp.Query, table: str) -> str:
        if not self.lists:
            return _match_sql(compiled, table, "NULL, NULL, NULL")
        kept, limit = _limit_column("terms", 1 + len(self.query.projection))
        return _match_sql(compiled, table, f"NULL, {kept}, {limit}")

    @cached_property
    def bound(self) -> JoinBound:
        return bound_join(self.query.where)


MatchPlan: TypeAlias = ConjunctionPlan | GeneralPlan


def _match_sql(compiled: exp.Query, table: str, outputs: str) -> str:
    return f"SELECT position, subscription, {outputs} FROM ({_bind_table(compiled, table)})"


def _probe_sql(compiled: exp.Query, table: str, solutions: bool) -> str:
    """SQL that counts the rows before aggregation, as far as they matter."""
    rows = compiled.copy()
    for part in ("group", "distinct"):
        rows.set(part, None)
    rows.set("expressions", [exp.Literal.number(1)])
    most = SOLUTIONS + 1 if solutions else 1
    return f"SELECT count(*) FROM ({_bind_table(rows, table)} LIMIT {most})"


def _limit_column(column: str, width: int) -> tuple[str, str]:
    """The column if it is not too long, and the limit that was reached if it is."""
    most = SOLUTIONS * max(1, width)
    return (
        f"CASE WHEN len({column}) <= {most} THEN {column} END",
        f"CASE WHEN len({column}) > {most} THEN '{LimitReached.SOLUTIONS}' END",
    )


def _bind_table(compiled: exp.Query, table: str) -> str:
    """The SQL of a query over a table of constants."""
    compiled = compiled.copy()
    for found in compiled.find_all(exp.Table):
        if found.name == "constants":
            found.set("this", exp.to_identifier(table))
    return to_sql(compiled, "duckdb")


def _constant_columns(pattern: Pattern) -> list[str]:
    """The columns of the constants in a stored pattern."""
    if pattern.predicate == algebra.STREAM_PREDICATE:
        return []
    return [f"k{node.index}" for node in (pattern.subject, pattern.object) if isinstance(node, Param)]
