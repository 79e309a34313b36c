"""Queries over history: chosen cases, with expected answers, against pyoxigraph."""

from __future__ import annotations

import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from tests.sparql.worlds import PREFIXES, Row, World, with_headers
from triplewire.sparql import compile_query, parse_query

FILE = tomllib.loads((Path(__file__).parent / "cases" / "history.toml").read_text())
CASES = [pytest.param(case, id=case["name"]) for case in FILE["case"]]


@cache
def world() -> World:
    headers = zip(World.read(FILE["data"]).events, FILE["sources"], FILE["applications"], strict=True)
    events = tuple(with_headers(event, source or None, application or None) for event, source, application in headers)
    return World(events, tuple(FILE["streams"]))


def expected(case: dict[str, Any]) -> Counter[Row]:
    if case["query"].startswith("ASK"):
        return Counter([(case["answer"] == [["true"]],)])
    return Counter(tuple(map(_term, row)) or (1,) for row in case["answer"])


def _term(text: str) -> str | None:
    """The canonical text of a term that is written as in Turtle; nothing for nothing."""
    if not text:
        return None
    turtle = f"{PREFIXES}:s :p {text} ."
    return str(next(iter(ox.parse(turtle.encode(), format=ox.RdfFormat.TURTLE))).object)


@pytest.mark.parametrize("case", CASES)
def test_answers(case: dict[str, Any]) -> None:
    assert world().history(case["query"]) == expected(case)


@pytest.mark.parametrize("case", CASES)
def test_answers_of_pyoxigraph(case: dict[str, Any]) -> None:
    headers = "tw:" in case["query"]
    assert world().oracle(case["query"], headers=headers) == expected(case)


def test_distinct_is_left_out_where_it_cannot_matter() -> None:
    plain, distinct, ask = (
        compile_query(parse_query(f"{form} {{ ?s ?p ?o }}"), "duckdb").sql
        for form in ("SELECT *", "SELECT DISTINCT *", "ASK")
    )
    assert (plain.count("DISTINCT"), distinct.count("DISTINCT"), ask.count("DISTINCT")) == (1, 1, 0)


def test_a_range_is_a_plain_comparison_that_statistics_can_prune_by() -> None:
    sql = compile_query(parse_query("SELECT DISTINCT ?s { ?s ?p ?o FILTER(?o > 20) }"), "duckdb").sql
    assert "WHERE q1.object_number >= CAST('20.0' AS DOUBLE) AND " in sql


def test_text_of_a_query_cannot_leave_its_quotes() -> None:
    text = 'SELECT ?s { ?s ?p "\' OR 1 = 1 --" FILTER(STR(?s) != "\'; DROP TABLE quads") }'
    assert world().history(text) == Counter()
