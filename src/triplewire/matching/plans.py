"""Plans: how the subscriptions of a shape are matched, as SQL over a batch of quads and the table of constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from sqlglot import exp

from triplewire.matching.shapes import Shape
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
from triplewire.sparql.compile.scans import STREAM

_OF_EVENTS = frozenset({"position", "quad", "graph", "stream", "source", "application", "time", "received"})


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
        """The matches as `position, subscription, solutions, terms`. `plain` says that doubles tell all numbers apart,
        `first` which pattern to join with the constants first."""


def plan_of(shape: Shape) -> Plan:
    return Whole(shape, shape.query) if isinstance(shape.query, Query) else Flat(shape, shape.query)


@dataclass(frozen=True)
class Flat:
    """For conjunctions: solutions are numbers of quads."""

    shape: Shape
    query: Conjunction

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
        solutions = "solutions" if self.shape.solutions else "NULL"
        return _matching(compiled, table, f"{solutions}, NULL")


@dataclass(frozen=True)
class Whole:
    """For any other query: solutions are terms."""

    shape: Shape
    query: Query

    @property
    def _asked(self) -> bool:
        """Whether the solutions are wanted, and are more than that there are some."""
        return self.shape.solutions and self.query.form == "select"

    @cached_property
    def _compiled(self) -> exp.Query:
        return compile_subscription(self.query, solutions=self._asked, stream=self.shape.stream)

    @cached_property
    def columns(self) -> frozenset[str]:
        events = any(each.name == "events" for each in self._compiled.find_all(exp.Table))
        return facets_used(self._compiled) | {"position", "quad"} | (_OF_EVENTS if events else set())

    @cached_property
    def facets(self) -> Mapping[int, frozenset[str]]:
        return params_with_facets(self._compiled)

    @property
    def naming(self) -> Mapping[int, Sequence[str]]:
        return {}

    def sql(self, table: str, *, plain: bool, first: int | None) -> str:
        return _matching(self._compiled, table, f"NULL, {'terms' if self._asked else 'NULL'}")


def _matching(compiled: exp.Query, table: str, outputs: str) -> str:
    compiled = compiled.copy()
    for found in compiled.find_all(exp.Table):
        if found.name == "constants":
            found.set("this", exp.to_identifier(table))
    return f"SELECT position, subscription, {outputs} FROM ({to_sql(compiled, 'duckdb')})"


def _names(pattern: Pattern) -> list[str]:
    """The columns of the constants that stand in a stored pattern."""
    if pattern.predicate == STREAM:
        return []
    return [f"k{node.index}" for node in (pattern.subject, pattern.object) if isinstance(node, Param)]
