"""Expressions, case by case: of stored terms, of constants and of parameters, against pyoxigraph.

Every case is an event of one world, so that the tables are made once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

from tests.sparql.worlds import PREFIXES, World, answer, conjunctive, lift, run, single, subscribed
from triplewire.sparql import compile_query, parse_query

FILE = Path(__file__).parent / "cases" / "expressions.tsv"


class Case(NamedTuple):
    """A row of the file: what `expression` is where ?a and ?b are those terms."""

    number: int
    expression: str
    a: str
    b: str
    expected: str
    oracle: str

    def __str__(self) -> str:
        return f"{self.expression} {self.a} {self.b}"

    @property
    def with_constants(self) -> str:
        return self.with_constant_b.replace("?a", self.a)

    @property
    def with_constant_b(self) -> str:
        return self.expression.replace("?b", self.b)

    @property
    def event(self) -> str:
        return f":event{self.number} {{ :case{self.number} :a {self.a} ; :b {self.b or '0'} }}"

    def query(self, expression: str) -> str:
        return f"SELECT * {{ :case{self.number} :a ?a ; :b ?b FILTER({expression}) }}"


def read() -> list[Case]:
    lines = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    return [_case(number, [*line.split("\t"), ""]) for number, line in enumerate(lines)]


def _case(number: int, cells: list[str]) -> Case:
    expression, a, b, expected, oracle = cells[:5]
    return Case(number, expression, a, b, expected, oracle or expected)


CASES = read()
each_case = pytest.mark.parametrize("case", CASES, ids=str)


@cache
def world() -> World:
    return World.read("\n".join(case.event for case in CASES))


@pytest.fixture(scope="module")
def relations() -> duckdb.DuckDBPyConnection:
    return world().relations()


def verdict(holds: Callable[[str], object], expression: str) -> str:
    """Evaluate an expression by whether it and its negation hold."""
    return "true" if holds(expression) else "false" if holds(f"!({expression})") else "error"


@each_case
def test_of_stored_terms(case: Case, relations: duckdb.DuckDBPyConnection) -> None:
    assert verdict(lambda each: run(relations, history(case.query(each))), case.expression) == case.expected


@each_case
def test_of_constants(case: Case, relations: duckdb.DuckDBPyConnection) -> None:
    if "BOUND" in case.expression:
        pytest.skip("BOUND takes only variables")
    found = verdict(lambda each: run(relations, history(f"ASK {{ FILTER({each}) }}"))[0][0], case.with_constants)
    assert found == case.expected


def history(text: str) -> str:
    return compile_query(parse_query(PREFIXES + text), "duckdb").sql


each_case_with_b = pytest.mark.parametrize("case", [case for case in CASES if "?b" in case.expression], ids=str)


@each_case_with_b
def test_of_parameters_whose_family_is_known(case: Case, relations: duckdb.DuckDBPyConnection) -> None:
    """Parameters of any family are stored terms of another table; generated queries have them, too."""
    shape = lift(conjunctive(case.query(case.with_constant_b)), typed=True)
    assert bool(run(relations, subscribed(shape, solutions=False))) == (case.expected == "true")


@each_case
def test_as_pyoxigraph_decides(case: Case) -> None:
    store = single(world().events[case.number])
    assert verdict(lambda each: answer(store, case.query(each)), case.expression) == case.oracle
