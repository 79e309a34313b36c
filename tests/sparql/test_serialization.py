"""The pretty printer: each operator and expression as text, and as JSON."""

from __future__ import annotations

import pytest

from triplewire.sparql import Apply, Param, Pattern, Var, parse_query
from triplewire.sparql.algebra import Basic, Filter
from triplewire.sparql.serialization import describe_algebra, format_algebra

CASES = {
    "SELECT DISTINCT ?s { ?s :p 'a', ?o } ORDER BY DESC(?o) ?s LIMIT 3 OFFSET 2": """
Select distinct ?s order by ?o descending, ?s limit 3 offset 2
  Basic ?s <urn:p> "a"
        ?s <urn:p> ?o""",
    "SELECT REDUCED * { { ?s :p ?o } UNION { GRAPH ?g { ?s (:p/^:q|!(:r|^:s))*/:t? ?o } } }": """
Select reduced ?s ?o ?g
  Union
    Basic ?s <urn:p> ?o
    Graph ?g
      Reach ?s (((<urn:p>/^<urn:q>)|!(<urn:r>|^<urn:s>))*/<urn:t>?) ?o""",
    "SELECT * { ?s :p+ ?o OPTIONAL { ?s :q ?x FILTER(?x < ?o || !BOUND(?x)) } MINUS { ?s :r ?o } }": """
Select ?s ?o ?x
  Minus
    LeftJoin ((?x < ?o) || !(bound(?x)))
      Reach ?s <urn:p>+ ?o
      Basic ?s <urn:q> ?x
    Basic ?s <urn:r> ?o""",
    "SELECT ?s (GROUP_CONCAT(DISTINCT ?o) AS ?l) (COUNT(*) AS ?n) { ?s :p ?o } GROUP BY ?s": """
Select ?s ?l ?n
  Extend ?n := ?.agg1
    Extend ?l := ?.agg0
      Group by ?s := ?s
            ?.agg0 := group_concat(distinct ?o)
            ?.agg1 := count(*)
        Basic ?s <urn:p> ?o""",
    "SELECT * { VALUES (?a ?b) { ('1' UNDEF) ('2' :x) ('3' :y) ('4' :z) } SERVICE :e { ?a ?p ?b } }": """
Select ?a ?b ?p
  Join
    Values ?a ?b: "1" UNDEF; "2" <urn:x>; "3" <urn:y>; … 4 rows
    Service <urn:e>""",
    "ASK { ?s :p ?o FILTER NOT EXISTS { ?o :p ?s FILTER(STRLEN(?o) > STRLEN(?s)) } }": """
Filter !(exists{Filter (strlen(?o) > strlen(?s)); Basic ?o <urn:p> ?s})
  Basic ?s <urn:p> ?o""",
}


@pytest.mark.parametrize("text", CASES)
def test_an_operator_is_a_line_with_those_inside_it_indented(text: str) -> None:
    assert format_algebra(parse_query(f"PREFIX : <urn:> {text}").where) == CASES[text].strip("\n")


def test_parameters_and_graphs_of_patterns_are_shown() -> None:
    patterns = Basic((Pattern(Var("s"), Param(0), Var("o"), Var("g")),))
    assert (
        format_algebra(Filter(patterns, (Apply("=", (Var("o"), Param(1))),)))
        == "Filter (?o = $1)\n  Basic ?s $0 ?o in ?g"
    )


def test_json_says_the_same() -> None:
    tree = describe_algebra(parse_query("ASK { ?s <urn:p> ?o, 'a' FILTER(?o = 'b') }").where)
    assert tree == {
        "operator": "Filter",
        "says": ['(?o = "b")'],
        "inside": [{"operator": "Basic", "says": ["?s <urn:p> ?o", '?s <urn:p> "a"'], "inside": []}],
    }
