"""Every operator on chosen events: decided, and as the evaluator decides."""

from __future__ import annotations

import pytest

from tests.matching.interpreter.oracles import PREFIXES, XSD, alike, batch, evaluated, event, lifted, singly
from triplewire.matching.interpreter.matcher import interpret_shape
from triplewire.model import Kind


def number(lexical: str, name: str = "integer") -> str:
    return f'"{lexical}"^^<{XSD}{name}>'


EVENTS = batch(
    [
        event(("o", "by", "a"), ("o", "value", number("7")), ("o", "unit", '"C"')),
        event(("o", "by", "b"), ("o", "value", number("3")), ("o", "value", number("9.5", "decimal"))),
        event(("a", "in", "b"), ("b", "in", "c"), ("c", "in", "a"), ("a", "name", '"a"@en'), ("a", "name", '"a"@EN')),
        event(
            ("o", "by", "a"), ("p", "by", "a"), ("o", "value", number("007")), ("p", "value", number("7.0", "double"))
        ),
        event(("o", "value", number("x")), ("o", "unit", '"C"'), ("o", "unit", '"K"'), ("p", "unit", '"C"')),
        event(("o", "by", "o"), ("o", "o", "o"), ("o", "value", number("2.5e0", "double"))),
    ]
)
QUERIES = (
    "SELECT ?o ?u { ?o :value ?v OPTIONAL { ?o :unit ?u } }",
    "SELECT * { ?o :by ?s OPTIONAL { ?o :value ?v FILTER(?v > 8 && ?s = :b) } }",
    "SELECT * { ?o :by ?s OPTIONAL { { ?o :value ?v FILTER(?s = :b) } } }",
    "SELECT * { ?o :by ?s OPTIONAL { ?o :value ?v OPTIONAL { ?o :unit ?u FILTER(?v > 5) } } }",
    "SELECT * { ?o :by ?s OPTIONAL { ?o :value ?v FILTER EXISTS { ?o :unit ?u FILTER(?s = :a) } } }",
    "SELECT * { ?a :in ?b OPTIONAL { ?b :in ?c OPTIONAL { ?c :in ?d FILTER(?d = ?a) } } }",
    "SELECT ?x { { ?x :by :a } UNION { ?x :in :b } UNION { ?x :unit ?u } }",
    "SELECT ?o { ?o :value ?v MINUS { ?o :by :a } }",
    "SELECT ?o { ?o :value ?v MINUS { ?x :by ?y } }",
    "SELECT ?o { ?o :value ?v MINUS { ?o :by ?y FILTER(?v = 7) } }",
    "SELECT * { ?o :by ?s OPTIONAL { ?o :unit ?u } MINUS { ?p :unit ?u } }",
    "SELECT ?o { ?o :value ?v FILTER NOT EXISTS { ?o :unit ?u } }",
    "SELECT ?o { ?o :value ?v FILTER EXISTS { ?o :value ?w FILTER(?w > ?v) } }",
    "SELECT ?o { ?o :value ?v FILTER EXISTS { { ?p :unit ?u FILTER(?v = 7) } UNION { ?o :by :b } } }",
    "SELECT ?o { ?o :value ?v FILTER(EXISTS { ?o :unit ?u } || EXISTS { ?o :by :b }) }",
    "SELECT ?o { ?o :value ?v FILTER(IF(EXISTS { ?o :unit ?u }, ?v > 5, ?v > 8)) }",
    "SELECT (COUNT(?v) AS ?n) (SUM(?v) AS ?s) (AVG(?v) AS ?a) { ?o :value ?v }",
    "SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?s) (AVG(?v) AS ?a) (MIN(?v) AS ?m) (SAMPLE(?v) AS ?x) { ?o :nothing ?v }",
    "SELECT ?o (COUNT(*) AS ?n) { ?o :nothing ?v } GROUP BY ?o",
    "SELECT ?o (MAX(?v) AS ?m) { ?o :value ?v } GROUP BY ?o HAVING (MAX(?v) > 8)",
    "SELECT ?u (COUNT(?o) AS ?n) { ?o :by ?s OPTIONAL { ?o :unit ?u } } GROUP BY ?u",
    "SELECT ?k (COUNT(DISTINCT *) AS ?n) { ?o ?p ?v } GROUP BY (isIRI(?v) AS ?k)",
    "SELECT (AVG(?v) AS ?mean) { ?o :value ?v } HAVING (AVG(?v) > 6)",
    "SELECT (SUM(?v / 3) AS ?s) { ?o :nothing ?v }",
    "SELECT ?v ?d { ?o :value ?v BIND(?v * 2 AS ?d) FILTER(?d > 10) }",
    "SELECT ?v ?e { ?o :value ?v BIND(?v * 0.1 AS ?d) BIND(?d + 1 AS ?e) }",
    "SELECT ?o ?c { ?o :by ?s VALUES (?s ?c) { (:a 1) (:b UNDEF) (UNDEF 3) } }",
    "SELECT * { VALUES ?x { 1 1 2 } VALUES ?y { 1 } }",
    "SELECT * { VALUES ?x { } }",
    "SELECT ?x ?y { ?x :in+ ?y }",
    "SELECT ?x ?y { ?x :in* ?y }",
    "SELECT ?y { :nobody :in* ?y }",
    "SELECT ?y { ?y :in? :c }",
    "SELECT ?x ?y { ?x :in/^:in|:by ?y }",
    "SELECT ?x ?y { ?x !(:in|^:value) ?y }",
    "SELECT ?g ?v ?u { GRAPH ?g { ?o :value ?v } OPTIONAL { ?o :unit ?u } }",
    "SELECT ?v { GRAPH :event { ?o :value ?v } }",
    "SELECT ?v { GRAPH :other { ?o :value ?v } }",
    "SELECT ?g { GRAPH ?g { } }",
    "SELECT * { GRAPH ?g { ?o :by ?s FILTER(BOUND(?g)) } }",
    "SELECT ?v { ?o :value ?v } ORDER BY DESC(?v) LIMIT 1",
    "SELECT ?o ?v { ?o :value ?v } LIMIT 1",
    "SELECT ?o ?v { ?o :value ?v } ORDER BY ?o ?v OFFSET 1",
    "SELECT DISTINCT ?p { ?o ?p ?v } ORDER BY ?p",
    "SELECT DISTINCT ?u { ?o :unit ?u }",
    "SELECT REDUCED ?u { ?o :unit ?u }",
    "SELECT ?o ?best { ?o :by ?s { SELECT ?o (MAX(?v) AS ?best) { ?o :value ?v } GROUP BY ?o } }",
    "SELECT ?o ?s { ?o :by ?s { SELECT ?o { ?o :value ?s } } }",
    "SELECT * { { SELECT ?o { ?o :unit ?u } ORDER BY ?u LIMIT 1 } ?o :unit ?u }",
    "SELECT * { ?x :o ?x }",
    "SELECT * { ?x ?x ?x }",
    "SELECT * { ?x ?p ?x }",
    "SELECT * { ?o :value ?v FILTER(?v = 7) }",
    "SELECT * { ?o :value 7 }",
    "SELECT * { ?a :name ?n FILTER(LANG(?n) = 'en') }",
    "SELECT * { ?a :name ?n FILTER(?n = 'a'@en) }",
    "SELECT * { ?o :value ?v FILTER(?v > 1 || BOUND(?never)) }",
    "SELECT * { ?o :value ?v FILTER(!(?v > 1 && ?never)) }",
    "SELECT * { ?o :value ?v FILTER(COALESCE(?never, ?v) < 7) }",
    "SELECT * { ?o :value ?v ; :by ?s FILTER(REGEX(STR(?s), '/[ab]$')) }",
    "SELECT * { { ?o :value ?v FILTER(?s = :a) } ?o :by ?s }",
    "SELECT * { ?e tw:stream ?s ; tw:time ?t ; tw:received ?r }",
    "SELECT * { ?e tw:source ?s }",
    "SELECT ?o { ?o :by ?s . ?e tw:stream 'test' FILTER NOT EXISTS { ?e tw:source ?x } }",
    "ASK { }",
    "SELECT * { }",
    "ASK { ?o :value 7 OPTIONAL { ?o :unit ?u } FILTER(BOUND(?u)) }",
    "CONSTRUCT { ?o :is ?v } { ?o :value ?v OPTIONAL { ?o :unit ?u } }",
)


@pytest.mark.parametrize("query", QUERIES)
def test_operators(query: str) -> None:
    asked = PREFIXES + query
    for kind in (Kind.BINDINGS, Kind.SIGNAL):
        found, expected = singly(asked, EVENTS, kind), evaluated(asked, EVENTS, kind)
        pairs = [(one, other) for one, other in zip(found, expected, strict=True) if one is not None]
        assert [(one, other) for one, other in pairs if not alike(asked, one, other)] == []
        assert len(pairs) >= len(found) - 1


def test_the_stream_is_a_part_of_the_question() -> None:
    for query in (QUERIES[0], "SELECT * { ?o :value ?v FILTER(REGEX(STR(?o), 'o')) }"):
        for stream in ("test", "other"):
            found = singly(PREFIXES + query, EVENTS, stream=stream)
            assert found == evaluated(PREFIXES + query, EVENTS, stream=stream)
            assert any(each is not None and each.matched for each in found) == (stream == "test")


UNKNOWN = (
    "SELECT (NOW() AS ?n) { ?o :value ?v }",
    "SELECT * { ?o :value ?v FILTER(MD5(?v) = 'x') }",
    "SELECT * { ?o :value ?v FILTER(REGEX(STR(?v), '(a+)+b')) }",
    "SELECT * { ?o :value ?v FILTER(REGEX(STR(?v), '\\\\p{L}')) }",
    "SELECT * { ?o :value ?v FILTER(REGEX(STR(?v), STR(?o))) }",
    "SELECT * { ?o :value ?v FILTER EXISTS { { SELECT ?o { ?o :unit ?u } } } }",
    "SELECT * { ?o :value ?v FILTER EXISTS { ?o :by ?s MINUS { ?o :unit ?u } } }",
    "SELECT * { ?o :value ?v FILTER EXISTS { BIND(?v AS ?w) } }",
)


@pytest.mark.parametrize("query", UNKNOWN)
def test_what_is_not_known_is_left_alone(query: str) -> None:
    assert interpret_shape(lifted(PREFIXES + query).shape) is None
