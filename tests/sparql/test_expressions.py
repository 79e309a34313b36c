"""Expressions, case by case: of stored terms, of constants and of parameters, against pyoxigraph.

Every case is an event of one world, so that the tables are made once.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

from tests.sparql.worlds import PREFIXES, World, answer, constants, lift, run, single
from triplewire.sparql import compile_event, compile_history, parse, to_sql

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


def verdict(yes: bool, no: bool) -> str:
    assert not (yes and no), "an expression and its negation are both true"
    return "true" if yes else "false" if no else "error"


@each_case
def test_of_stored_terms(case: Case, relations: duckdb.DuckDBPyConnection) -> None:
    texts = (case.query(case.expression), case.query(f"!({case.expression})"))
    yes, no = (bool(run(relations, history(text))) for text in texts)
    assert verdict(yes, no) == case.expected


@each_case
def test_of_constants(case: Case, relations: duckdb.DuckDBPyConnection) -> None:
    if "BOUND" in case.expression:
        pytest.skip("BOUND takes only variables")
    texts = (f"ASK {{ FILTER({case.with_constants}) }}", f"ASK {{ FILTER(!({case.with_constants})) }}")
    yes, no = (bool(run(relations, history(text))[0][0]) for text in texts)
    assert verdict(yes, no) == case.expected


def history(text: str) -> str:
    return to_sql(compile_history(parse(PREFIXES + text)), "duckdb")


each_case_with_b = pytest.mark.parametrize("case", [case for case in CASES if "?b" in case.expression], ids=str)


@each_case_with_b
def test_of_parameters_whose_family_is_known(case: Case, relations: duckdb.DuckDBPyConnection) -> None:
    assert matched(case, case.with_constant_b, relations, typed=True) == (case.expected == "true")


@each_case_with_b
def test_of_parameters_of_any_family(case: Case, relations: duckdb.DuckDBPyConnection) -> None:
    assert matched(case, f"!({case.with_constant_b})", relations, typed=False) == (case.expected == "false")


def matched(case: Case, expression: str, relations: duckdb.DuckDBPyConnection, *, typed: bool) -> bool:
    shape = lift(parse(PREFIXES + case.query(expression)), typed=typed)
    constants(relations, shape)
    return bool(run(relations, to_sql(compile_event(shape.query, solutions=False), "duckdb")))


@each_case
def test_as_pyoxigraph_decides(case: Case) -> None:
    store = single(world().events[case.number])
    yes, no = (bool(answer(store, case.query(text))) for text in (case.expression, f"!({case.expression})"))
    assert verdict(yes, no) == case.oracle
