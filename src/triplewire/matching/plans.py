"""Plans: how the subscriptions of a shape are matched, as SQL over a batch of quads and the table of constants."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from sqlglot import exp

from triplewire.matching.shapes import Shape
from triplewire.sparql import (
    QUADS,
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

_PARAM = re.compile(r"k(\d+)(?:_(\w+))?")
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
    def columns(self) -> frozenset[str]:
        return facets_used(self.query)

    @cached_property
    def facets(self) -> Mapping[int, frozenset[str]]:
        return params_with_facets(self.query)

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

    @cached_property
    def _compiled(self) -> exp.Query:
        asked = self.shape.solutions and self.query.form == "select"
        return compile_subscription(self.query, solutions=asked, stream=self.shape.stream)

    @cached_property
    def columns(self) -> frozenset[str]:
        read = {each.name for each in self._compiled.find_all(exp.Column)} & set(QUADS)
        events = any(each.name == "events" for each in self._compiled.find_all(exp.Table))
        return frozenset(read | {"position", "quad"} | (_OF_EVENTS if events else set()))

    @cached_property
    def facets(self) -> Mapping[int, frozenset[str]]:
        found: dict[int, set[str]] = {}
        for each in self._compiled.find_all(exp.Column):
            if each.table == "c" and (match := _PARAM.fullmatch(each.name)):
                found.setdefault(int(match[1]), set()).add(match[2] or "term")
        return {index: frozenset(names) for index, names in found.items()}

    @property
    def naming(self) -> Mapping[int, Sequence[str]]:
        return {}

    def sql(self, table: str, *, plain: bool, first: int | None) -> str:
        asked = self.shape.solutions and self.query.form == "select"
        return _matching(self._compiled, table, f"NULL, {'terms' if asked else 'NULL'}")


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
