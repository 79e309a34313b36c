"""Recognition of conjunctions: queries of triple patterns and filters alone."""

from __future__ import annotations

import pytest

from tests.sparql.worlds import PREFIXES, conjunctive
from triplewire.sparql import UNBOUND, Apply, Conjunction, Const, Var, parse_query, to_conjunction

E = "http://example.org/"


def test_graph_holds_for_the_patterns_inside_it() -> None:
    found = conjunctive("SELECT * { ?s :p ?o GRAPH ?g { ?s :p ?o { ?s :q ?o } } GRAPH :g { ?s :r ?o } }").patterns
    assert [each.graph for each in found] == [None, Var("g"), Var("g"), Const(f"<{E}g>")]


def test_a_filter_sees_only_its_own_group() -> None:
    query = conjunctive("SELECT * { ?s ?p ?o { ?a ?p ?b FILTER(?o = ?b) } FILTER(?a = ?nowhere) }")
    assert query.filters == (Apply("=", (UNBOUND, Var("b"))), Apply("=", (Var("a"), UNBOUND)))


def test_a_filter_in_graph_sees_the_graph() -> None:
    query = conjunctive(f"SELECT * {{ GRAPH ?g {{ ?s ?p ?o FILTER(?g = <{E}>) }} }}")
    assert query.filters == (Apply("=", (Var("g"), Const(f"<{E}>"))),)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("ask where {}", Conjunction("ask", ())),
        ("SELECT DISTINCT ?a ?a {} OFFSET 3 LIMIT 2", Conjunction("select", (), (), ("a",), True, 2, 3)),
        ("SELECT REDUCED * {}", Conjunction("select", ())),
        ("# nothing\nASK{}#more", Conjunction("ask", ())),
    ],
)
def test_forms_and_modifiers(text: str, query: Conjunction) -> None:
    assert conjunctive(text) == query


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?s ?p ?o OPTIONAL { ?s ?q ?r } }",
        "SELECT * { { ?s ?p ?o } UNION { ?s ?q ?r } }",
        "SELECT * { ?s ?p ?o MINUS { ?s ?q ?r } }",
        "SELECT * { ?s ?p ?o BIND(1 AS ?x) }",
        "SELECT * { VALUES ?s { 1 } ?s ?p ?o }",
        "SELECT * { ?s ?p ?o } VALUES ?s { 1 }",
        "SELECT * { SERVICE :x { ?s ?p ?o } }",
        "SELECT * { { SELECT ?s { ?s ?p ?o } } }",
        "SELECT * { ?s :a/:b ?o }",
        "SELECT * { ?s ^:a ?o }",
        "SELECT * { ?s :a* ?o }",
        "SELECT * { ?s !:a ?o }",
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
        "SELECT (?s AS ?n) { ?s ?p ?o }",
        "SELECT ?s { ?s ?p ?o } GROUP BY ?s",
        "SELECT (1 AS ?a) { ?s ?p ?o } HAVING (COUNT(*) > 1)",
        "SELECT ?s { ?s ?p ?o } ORDER BY ?s",
        "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
        "DESCRIBE :a",
        "SELECT * FROM :g { ?s ?p ?o }",
        "SELECT * { ?s ?p ?o FILTER EXISTS { ?s ?q ?r } }",
        "SELECT * { ?s ?p ?o FILTER(?o = 1 || NOT EXISTS { ?s ?q ?r }) }",
        "SELECT * { GRAPH ?g { GRAPH ?h { ?s ?p ?o } } }",
        "SELECT * { GRAPH ?g { } }",
    ],
)
def test_what_is_more_is_none(text: str) -> None:
    assert to_conjunction(parse_query(PREFIXES + text)) is None
