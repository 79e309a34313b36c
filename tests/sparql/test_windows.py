"""Queries over windows: chosen cases, with expected answers, against pyoxigraph."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.sparql.entailment.rdfs_oracle import SUB_PROPERTY
from tests.sparql.test_queries import expected
from tests.sparql.window_worlds import Panes
from tests.sparql.worlds import World, run, with_headers
from triplewire.sparql import Family, Statistics, TripleCounts, compile_windows
from triplewire.sparql.entailment.ontologies import build_ontology
from triplewire.sparql.entailment.rewriting import rewrite_query
from triplewire.sparql.optimizer import optimize_query
from triplewire.sparql.serialization import algebra_from_json, algebra_to_json, format_algebra
from triplewire.sparql.statistics import PredicateKind

FILE = tomllib.loads((Path(__file__).parent / "cases" / "windows.toml").read_text())
CASES = [pytest.param(case, id=case["name"]) for case in FILE["case"]]
GRAPHS = [pytest.param(case, id=case["name"]) for case in FILE["graph"]]
JOINED = "SELECT ?o ?r WHERE { WINDOW <w0> { ?o :by ?s ; :value ?v FILTER(?v > 25) } ?s :room ?r FILTER(?v < 40) }"

UNTRUE = Statistics(
    predicates={
        "<http://example.org/by>": TripleCounts(1, 1, 1, 1),
        "<http://example.org/value>": TripleCounts(9, 9, 9, 9),
    },
    kinds={
        f"<http://example.org/{name}>": PredicateKind(frozenset({Family.IRI}), unique=True) for name in ("by", "value")
    },
    numbers={"<http://example.org/by>": 7},
    identified=True,
    complete=True,
    blank=False,
    single=True,
)
"""Statistics of a lake that is nothing like the windows."""


@cache
def panes() -> Panes:
    first, second = (World.read(each) for each in FILE["windows"])
    headers = zip(first.events, FILE["sources"], FILE["applications"], strict=True)
    events = tuple(with_headers(event, source or None, application or None) for event, source, application in headers)
    return Panes((World(events), second), World.read(FILE["background"]))


@pytest.mark.parametrize("case", CASES)
def test_answers(case: dict[str, Any]) -> None:
    found = panes().answer(case["query"])
    assert found == panes().oracle(case["query"])
    assert "answer" not in case or found == expected(case)


@pytest.mark.parametrize("case", GRAPHS)
def test_events_are_graphs_inside_of_a_window(case: dict[str, Any]) -> None:
    alone = case["query"].replace("WINDOW <w0>", "")
    found, window = panes().answer(case["query"]), panes().windows[0]
    assert found == window.history(alone)
    assert found == (expected(case) if "answer" in case else window.oracle(alone, headers="tw:" in alone))


def test_what_is_known_of_the_lake_is_not_believed_of_windows() -> None:
    text = "SELECT ?o ?v WHERE { WINDOW <w0> { ?o :by :s1 ; :value ?v FILTER(?v > 25) } }"
    registration = panes().registration(text)
    found = run(panes().relations(registration), compile_windows(registration, "duckdb", UNTRUE).sql)
    assert found == [*panes().oracle(text)]


def test_scans_of_windows_are_no_readings_of_the_lake() -> None:
    registration = panes().registration(JOINED)
    (reading,) = compile_windows(registration, "duckdb").scan_predicates
    assert reading.relation == "quads"


def test_from_says_nothing_of_windows() -> None:
    text = "SELECT ?s ?o FROM :e9 WHERE { { WINDOW <w1> { ?o :by ?s } } UNION { ?s :room ?o } }"
    registration = panes().registration(text)
    found = run(panes().relations(registration), compile_windows(registration, "duckdb").sql)
    assert sorted(each[1][-3:-1] for each in found) == ["p1", "p2"]


def test_constants_of_windows_fill_a_plan_that_is_compiled_once() -> None:
    for sensor, rows in (("s1", 2), ("s2", 1), ("s3", 0)):
        assert panes().answer(f"SELECT ?o WHERE {{ WINDOW <w0> {{ ?o :by :{sensor} }} }}").total() == rows


def test_now_is_when_it_is_asked() -> None:
    registration = panes().registration("SELECT (YEAR(NOW()) AS ?y) WHERE { WINDOW <w0> { ?o :unit ?u } }")
    compiled = compile_windows(registration, "duckdb", now=datetime(1999, 1, 1, tzinfo=UTC))
    assert run(panes().relations(registration), compiled.sql) == [
        ('"1999"^^<http://www.w3.org/2001/XMLSchema#integer>',)
    ]


def test_filters_move_into_windows_and_the_plan_is_told() -> None:
    query = panes().registration(JOINED).query
    told = format_algebra(optimize_query(query, Statistics()).where)
    assert told.index("Window <w0>") < told.index("(?v < ") < told.index("/value> ?v")


def test_the_algebra_of_windows_is_a_json_value() -> None:
    query = panes().registration(JOINED).query
    assert algebra_from_json(algebra_to_json(query)) == query


def test_an_ontology_concerns_what_windows_hold() -> None:
    ontology = build_ontology([("<http://example.org/by>", SUB_PROPERTY, "<http://example.org/of>")])
    text = "SELECT ?o WHERE { WINDOW <w1> { ?o :of :s1 } }"
    registration = panes().registration(text)
    wider = replace(registration, query=rewrite_query(registration.query, ontology))
    found = run(panes().relations(wider), compile_windows(wider, "duckdb").sql)
    assert Counter(found) == panes().oracle(text.replace(":of", ":by"))


def test_an_order_that_is_left_open_may_be_that_of_texts() -> None:
    registration = panes().registration("SELECT ?o ?v WHERE { WINDOW <w0> { ?o :value ?v } }")
    found = run(panes().relations(registration), compile_windows(registration, "duckdb", steady=True).sql)
    assert found == sorted(found)
    assert len(found) == 3
