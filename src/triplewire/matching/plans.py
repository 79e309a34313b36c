"""Plans: how the subscriptions of a shape are matched, as SQL over a batch of quads and the table of constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from sqlglot import exp

from triplewire.config.limits import SOLUTIONS
from triplewire.matching.bounds import Bound, bound_of
from triplewire.matching.shapes import Shape
from triplewire.model import LimitReached
from triplewire.sparql import (
    Conjunction,
    Param,
    Pattern,
    Query,
    compile_event,
    compile_subscription,
    facets_used,
    params_with_facets,
    to_sql,
)
from triplewire.sparql.algebra import Basic
from triplewire.sparql.compiler.scans import STREAM_PREDICATE

OF_EVENTS = frozenset({"position", "quad", "graph", "stream", "source", "application", "time", "received"})
"""The columns of `quads` that the view `events` is made for."""


class Plan(Protocol):
    """What a table of constants asks of its shape."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns of `quads` that are read, also by way of `events`."""

    @property
    def facets(self) -> Mapping[int, frozenset[str]]:
        """Which columns of each parameter are read: `term` for its text, else names of facets."""

    @property
    def naming(self) -> Mapping[int, Sequence[str]]:
        """The columns of constants that stand in each pattern, for those patterns that can come first."""

    def sql(self, table: str, *, plain: bool, first: int | None) -> str:
        """The matches as `position, subscription, solutions, terms, limit`. `plain` says that doubles tell all numbers
        apart, `first` which pattern to join with the constants first."""

    def alone(self, table: str) -> str:
        """The same for a single event and subscription."""

    def probe(self, table: str) -> str:
        """How many solutions there are, as far as that matters: up to one more than are told, or one. For a single
        event and subscription."""

    @property
    def lists(self) -> bool:
        """Whether solutions are listed: they are wanted, and more than that there are some."""

    @property
    def bound(self) -> Bound:
        """How many rows its joins may have."""


def plan_of(shape: Shape) -> Plan:
    return Whole(shape, shape.query) if isinstance(shape.query, Query) else Flat(shape, shape.query)


@dataclass(frozen=True)
class Flat:
    """For conjunctions: solutions are numbers of quads."""

    shape: Shape
    query: Conjunction

    @property
    def lists(self) -> bool:
        return self.shape.solutions

    @cached_property
    def _read(self) -> tuple[frozenset[str], Mapping[int, frozenset[str]]]:
        """Of the query that reads most. The query is not kept: there may be thousands of shapes."""
        compiled = compile_event(self.query, solutions=True)
        return facets_used(compiled), params_with_facets(compiled)

    @property
    def columns(self) -> frozenset[str]:
        return self._read[0]

    @property
    def facets(self) -> Mapping[int, frozenset[str]]:
        return self._read[1]

    @property
    def naming(self) -> Mapping[int, Sequence[str]]:
        found = {number: _names(pattern) for number, pattern in enumerate(self.query.patterns)}
        return {number: names for number, names in found.items() if names}

    def sql(self, table: str, *, plain: bool, first: int | None) -> str:
        compiled = compile_event(self.query, solutions=self.shape.solutions, plain=plain, first=first)
        if not self.shape.solutions:
            return _matching(compiled, table, "NULL, NULL, NULL")
        kept, limit = _limited("solutions", len(self.query.patterns))
        return _matching(compiled, table, f"{kept}, NULL, {limit}")

    def alone(self, table: str) -> str:
        return self.sql(table, plain=False, first=None)

    def probe(self, table: str) -> str:
        return _probing(compile_event(self.query, solutions=self.shape.solutions), table, self.shape.solutions)

    @cached_property
    def bound(self) -> Bound:
        return bound_of(Basic(self.query.patterns))


@dataclass(frozen=True)
class Whole:
    """For any other query: solutions are terms."""

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
        # an event is weighed by its predicates, also by those of parts that the query leaves out
        return facets_used(self._compiled) | {"position", "quad", "predicate"} | (OF_EVENTS if events else set())

    @cached_property
    def facets(self) -> Mapping[int, frozenset[str]]:
        return params_with_facets(self._compiled)

    @property
    def naming(self) -> Mapping[int, Sequence[str]]:
        return {}

    def sql(self, table: str, *, plain: bool, first: int | None) -> str:
        return self._told(self._compiled, table)

    def alone(self, table: str) -> str:
        return self._told(self._compiled_alone(), table)

    def probe(self, table: str) -> str:
        return _probing(self._compiled_alone(), table, self.lists)

    def _compiled_alone(self) -> exp.Query:
        return compile_subscription(self.query, solutions=self.lists, stream=self.shape.stream, alone=True)

    def _told(self, compiled: exp.Query, table: str) -> str:
        if not self.lists:
            return _matching(compiled, table, "NULL, NULL, NULL")
        kept, limit = _limited("terms", 1 + len(self.query.projection))
        return _matching(compiled, table, f"NULL, {kept}, {limit}")

    @cached_property
    def bound(self) -> Bound:
        return bound_of(self.query.where)


def _matching(compiled: exp.Query, table: str, outputs: str) -> str:
    return f"SELECT position, subscription, {outputs} FROM ({_over(compiled, table)})"


def _probing(compiled: exp.Query, table: str, solutions: bool) -> str:
    """The rows of which the query makes its lists, or its one row for each pair, as far as they need to be counted."""
    rows = compiled.copy()
    for part in ("group", "distinct"):
        rows.set(part, None)
    rows.set("expressions", [exp.Literal.number(1)])
    most = SOLUTIONS + 1 if solutions else 1
    return f"SELECT count(*) FROM ({_over(rows, table)} LIMIT {most})"


def _limited(column: str, width: int) -> tuple[str, str]:
    """The column where it is not too long, and what to tell where it is."""
    most = SOLUTIONS * max(1, width)
    return (
        f"CASE WHEN len({column}) <= {most} THEN {column} END",
        f"CASE WHEN len({column}) > {most} THEN '{LimitReached.SOLUTIONS}' END",
    )


def _over(compiled: exp.Query, table: str) -> str:
    """The query over the constants that are in a table."""
    compiled = compiled.copy()
    for found in compiled.find_all(exp.Table):
        if found.name == "constants":
            found.set("this", exp.to_identifier(table))
    return to_sql(compiled, "duckdb")


def _names(pattern: Pattern) -> list[str]:
    """The columns of the constants that stand in a stored pattern."""
    if pattern.predicate == STREAM_PREDICATE:
        return []
    return [f"k{node.index}" for node in (pattern.subject, pattern.object) if isinstance(node, Param)]
