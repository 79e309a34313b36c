"""Row steps over terms, against pyoxigraph's evaluation of VALUES."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import duckdb
import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sparql.expression_tables import normal
from tests.sparql.test_generated import LITERALS, RESOURCES, conditions, operands
from tests.sparql.worlds import PREFIXES, World, answer, run
from triplewire.model.terms import XSD
from triplewire.sparql import (
    Apply,
    Bind,
    Check,
    Const,
    Family,
    RowStep,
    Var,
    compile_rows,
    parse_query,
    split_unbounded,
)

Row = tuple[str, str, str]
Answer = Counter[tuple[int, str | None, str | None]]

NAMES = ("x", "y", "z")
"""The variables of the rows. Expressions have ?g, too, which is never bound."""


def steps(elements: str) -> tuple[RowStep, ...]:
    """The elements of a group with these variables."""
    return split_unbounded(parse_query(f"{PREFIXES}SELECT * {{ ?x ?y ?z {elements} }}")).steps


def computed(rows: list[Row], given: tuple[RowStep, ...], families: Mapping[str, Family] | None = None) -> Answer:
    """The number of each row that passes, with ?x and ?b."""
    found = run(_rows(rows), compile_rows(NAMES, given, ("x", "b"), families=families or {}))
    return _answer([row[0] for row in found], [row[1] for row in found], [row[2] for row in found])


def _rows(rows: list[Row]) -> duckdb.DuckDBPyConnection:
    connection = World(()).relations()
    texts = {f"v{place}": pa.array([row[place] for row in rows], pa.string()) for place in range(len(NAMES))}
    connection.register("rows", pa.table({"row": pa.array(range(len(rows)), pa.int64()), **texts}))
    return connection


def _answer(numbers: list[int], x: list[str | None], b: list[str | None]) -> Answer:
    return Counter(zip(numbers, normal(x), normal(b), strict=True))


def expected(rows: list[Row], elements: str) -> Answer:
    listed = " ".join(f"({number} {' '.join(row)})" for number, row in enumerate(rows))
    text = f"SELECT ?row ?x ?b {{ VALUES (?row ?x ?y ?z) {{ {listed} }} {elements} }}"
    found = [*answer(ox.Store(), text).elements()]
    return _answer([int(row[0].split('"')[1]) for row in found], [row[1] for row in found], [row[2] for row in found])


terms = st.sampled_from((*RESOURCES, *LITERALS))
rows = st.lists(st.tuples(terms, terms, terms), min_size=1, max_size=8)
binds = operands.filter(lambda each: "/" not in each).map(lambda each: f"BIND({each} AS ?b)")
"""Expressions without quotients, whose number of digits is left open."""
elements = st.tuples(st.one_of(st.just(""), binds), st.lists(conditions.map(lambda each: f"FILTER{each}"), max_size=2))


@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(rows, elements)
def test_rows_are_computed_as_by_pyoxigraph(given: list[Row], parts: tuple[str, list[str]]) -> None:
    text = f"{parts[0]} {' '.join(parts[1])}"
    assert computed(given, steps(text)) == expected(given, text)


SOME: list[Row] = [
    (f'"{number}"^^<{XSD}integer>', f"<http://example.org/{name}>", f'"{name}"@en')
    for number, name in enumerate("abcd")
]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "FILTER(?x > 1)",
        "FILTER(?x > 1 || REGEX(STR(?y), 'a$'))",
        "FILTER(?never > 1)",
        "FILTER(!BOUND(?never))",
        "BIND(?x * 2 AS ?b) FILTER(?b > 2)",
        "BIND(?x * 2 AS ?b) BIND(CONCAT(STR(?b), ?z) AS ?c) FILTER(STRLEN(?c) > 1 && ?b < 6)",
        "BIND(?x / 0 AS ?b)",
        "BIND(?x / 0 AS ?b) FILTER(?b = 1)",
        "BIND(IF(?x > 1, ?y, ?z) AS ?b) FILTER(isIRI(?b))",
        "BIND(LANG(?z) AS ?b) FILTER(LANGMATCHES(?b, 'EN'))",
        "VALUES ?y { :a :c :q } BIND(?y AS ?b)",
        "VALUES (?x ?z) { (0 'a'@en) (1 'a'@en) }",
        "{ ?x ?y ?z BIND(?x + 1 AS ?b) } { ?x ?y ?z BIND(2 AS ?b) }",
    ],
)
def test_chosen_steps(text: str) -> None:
    plain = text.replace(
        "{ ?x ?y ?z BIND(?x + 1 AS ?b) } { ?x ?y ?z BIND(2 AS ?b) }", "BIND(?x + 1 AS ?b) FILTER(?b = 2)"
    )
    assert computed(SOME, steps(text)) == expected(SOME, plain)


def test_constants_may_be_columns_of_a_family() -> None:
    """Constants as columns let queries share SQL: here ?y is the bound of ?x."""
    given: list[Row] = [(f'"{x}"^^<{XSD}integer>', f'"{y}"^^<{XSD}integer>', '"s"') for x in range(4) for y in range(4)]
    above = (Check(Apply(">", (Var("x"), Var("y")))),)
    wanted = expected(given, "FILTER(?x > ?y)")
    assert computed(given, above) == wanted
    assert computed(given, above, {"x": Family.EXACT, "y": Family.EXACT}) == wanted
    plain, known = (
        compile_rows(NAMES, above, (), families=each) for each in ({}, {"x": Family.EXACT, "y": Family.EXACT})
    )
    assert len(known) < len(plain)


def test_a_row_that_passes_is_told_once_with_or_without_terms() -> None:
    twice: list[Row] = [SOME[1], SOME[1]]
    sql = compile_rows(NAMES, steps("FILTER(?x = 1)"), ())
    assert sorted(run(_rows(twice), sql)) == [(0,), (1,)]


def test_a_constant_that_is_bound_is_told() -> None:
    sql = compile_rows((), (Bind("s", Const("<urn:a>")),), ("s", "never"))
    assert run(_rows(SOME[:1]), sql) == [(0, "<urn:a>", None)]


def test_text_of_a_query_cannot_leave_its_quotes() -> None:
    assert computed(SOME, steps('FILTER(STR(?y) != "\'; DROP TABLE quads" && ?z = "\' OR 1 = 1 --")')) == Counter()


def test_spark_is_told_the_same() -> None:
    sql = compile_rows(NAMES, steps("FILTER(?x > 1)"), ("x",), "spark")
    assert "FROM rows AS rows" in sql
