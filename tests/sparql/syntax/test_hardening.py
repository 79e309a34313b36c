"""Hostile texts: each ends with an answer or with an error of ours, and none fills the stack."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model.errors import BodyTooLarge, SparqlSyntax, Unsupported
from triplewire.sparql import parse_query, parse_registration
from triplewire.sparql.syntax.cursor import QUERY_NESTING
from triplewire.sparql.syntax.queries import QUERY_BYTES

LONG = 20_000
DEEP = QUERY_NESTING - 4


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("ASK " + "{ " * LONG, id="groups"),
        pytest.param("ASK { FILTER" + "(" * LONG, id="brackets"),
        pytest.param("ASK { FILTER(" + "STR(" * LONG, id="calls"),
        pytest.param("ASK { " + "FILTER NOT EXISTS { " * LONG, id="filters in filters"),
        pytest.param("ASK { " + "{ SELECT * { " * LONG, id="sub-queries"),
        pytest.param("ASK { ?s " + "(" * LONG, id="paths"),
        pytest.param("ASK { ?s ?p " + "[ ?p " * LONG, id="blank nodes"),
        pytest.param("ASK { ?s ?p " + "( " * LONG, id="collections"),
        pytest.param(f"ASK {{ FILTER({' + '.join('1' * LONG)}) }}", id="a sum"),
        pytest.param(f"ASK {{ FILTER({' / '.join('1' * LONG)}) }}", id="a quotient"),
        pytest.param(f"ASK {{ FILTER({'(' * DEEP}1{('+1' * DEEP + ')') * DEEP}) }}", id="sums of sums"),
        pytest.param(f"ASK {{ {'OPTIONAL {} ' * LONG} }}", id="OPTIONAL after OPTIONAL"),
        pytest.param(f"ASK {{ {'MINUS {} ' * LONG} }}", id="MINUS after MINUS"),
        pytest.param(f"ASK {{ {' '.join(f'BIND(1 AS ?x{n})' for n in range(LONG))} }}", id="BIND after BIND"),
        pytest.param(f"SELECT {' '.join(f'(1 AS ?x{n})' for n in range(1_000))} {{}}", id="SELECT expressions"),
    ],
)
def test_depth_is_refused_by_name(text: str) -> None:
    with pytest.raises(Unsupported, match=f"nesting deeper than {QUERY_NESTING}"):
        parse_query(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        pytest.param(f"ASK {{ ?s {'/'.join(['<x:p>'] * LONG)} ?o }}", "256 triple patterns", id="a chain"),
        pytest.param(f"ASK {{ ?s {'|'.join(['<x:p>'] * LONG)} ?o }}", "256 triple patterns", id="alternatives"),
        pytest.param(f"ASK {{ {'?s ?p ?o .' * LONG} }}", "256 triple patterns", id="triples"),
        pytest.param(f"ASK {{ ?s ?p ({'1 ' * LONG}) }}", "256 triple patterns", id="a collection"),
        pytest.param(f"ASK {{ {' UNION '.join(['{}'] * LONG)} }}", "4096 groups", id="a union"),
        pytest.param(f"ASK {{ FILTER({' || '.join('1' * LONG)}) }}", "10000 terms", id="a disjunction"),
        pytest.param(f"ASK {{ {'FILTER(1) ' * LONG} }}", "10000 terms", id="filters"),
        pytest.param(f"ASK {{ FILTER(1 IN ({','.join('1' * LONG)})) }}", "10000 terms", id="a list"),
        pytest.param(f"SELECT ?s {{}} ORDER BY {'?s ' * LONG}", "10000 terms", id="an order"),
        pytest.param(f"SELECT {'?s ' * LONG} {{}}", "10000 terms", id="a projection"),
    ],
)
def test_length_is_refused_by_name(text: str, what: str) -> None:
    with pytest.raises(Unsupported, match=f"more than {what}"):
        parse_query(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("ASK " + "{ " * DEEP + "}" * DEEP, id="groups"),
        pytest.param(f"ASK {{ FILTER({'STR(' * DEEP}1{')' * DEEP}) }}", id="calls"),
        pytest.param(f"ASK {{ FILTER({'-(1 * 1 + (' * (DEEP // 3)}1{'))' * (DEEP // 3)}) }}", id="operators"),
        pytest.param("ASK { " + "FILTER EXISTS { " * (DEEP // 3) + "}" * (DEEP // 3) + "}", id="filters in filters"),
        pytest.param("ASK { " + "{ SELECT * { " * (DEEP // 2) + "}}" * (DEEP // 2) + "}", id="sub-queries"),
        pytest.param(f"ASK {{ ?s {'(' * DEEP}<x:p>{')*' * DEEP} ?o }}", id="paths"),
        pytest.param(f"ASK {{ ?s ?p {'[ ?p ' * DEEP}1{']' * DEEP} }}", id="blank nodes"),
        pytest.param(f"ASK {{ FILTER({' || '.join('1' * 9_000)}) }}", id="a disjunction"),
        pytest.param(f"ASK {{ {' UNION '.join(['{ VALUES ?x { 1 } }'] * 4_000)} }}", id="a union"),
        pytest.param(f"ASK {{ VALUES ?x {{ {'1 ' * 100_000} }} }}", id="values"),
        pytest.param(f"ASK {{}} LIMIT {'9' * LONG}", id="a number"),
    ],
)
def test_what_is_within_the_limits_is_taken(text: str) -> None:
    assert parse_query(text).form == "ask"


def test_a_text_over_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(BodyTooLarge):
        parse_query("ASK {} #" + "é" * (QUERY_BYTES // 2))


def test_many_services_share_their_declarations() -> None:
    prefixes = "".join(f"PREFIX p{number}: <x:{number}>\n" for number in range(2_000))
    found = parse_query(f"{prefixes} ASK {{ {'SERVICE <x:y> {} ' * 2_000} }}")
    assert found.form == "ask"


QUERIES = [
    "PREFIX : <http://example.org/> SELECT DISTINCT ?s (COUNT(?o) AS ?n) FROM <x:g> { ?s :p/^:q* ?o ; a :T , [] "
    "OPTIONAL { ?o :r 'x'@en FILTER(?o > -1.5e3 && REGEX(STR(?s), \"a\\n\")) } } GROUP BY ?s HAVING (SUM(?o) > 1) "
    "ORDER BY DESC(?n) LIMIT 10 OFFSET 1",
    "CONSTRUCT { ?s <x:p> _:b } WHERE { { ?s ?p (1 2) } UNION { SERVICE SILENT ?e { ?s ?p ?o } } "
    "MINUS { ?s !(a|^a) 1 } BIND(IF(BOUND(?s), 1, ?o) AS ?z) VALUES (?a ?b) { (UNDEF 'x'^^<x:t>) } "
    "FILTER NOT EXISTS { GRAPH ?g { } } }",
    "BASE <x:/a> DESCRIBE <b> ?x { SELECT ?x { ?x \\u003Fp ?y } } # end",
]
REGISTERED = (
    "PREFIX : <http://example.org/> REGISTER ISTREAM <out> AS SELECT ?s (MAX(?v) AS ?m) FROM NAMED <x:g> "
    "FROM NAMED WINDOW <w> ON <home> [RANGE PT1H0.5S STEP 10m] "
    "FROM NAMED WINDOW :v ON STREAM <x:/streams/x> [TRIPLES 9] "
    "{ WINDOW <w> { ?s :p ?v FILTER EXISTS { ?v :q* 1 } } OPTIONAL { WINDOW :v { GRAPH ?g { ?s a ?t } } } } GROUP BY ?s"
)
WORDS = (
    "SELECT ASK CONSTRUCT WHERE { } ( ) [ ] < > << >> <<( )>> {| |} . , ; * + - / | ^ ! ? = && || ?x $y _:b <x:y> :p a "
    '\'s\' """t""" \'u 1 .5 1e9 true @en ^^ FILTER BIND AS VALUES UNDEF OPTIONAL UNION MINUS GRAPH SERVICE EXISTS '
    "NOT IN COUNT SUM GROUP BY HAVING ORDER LIMIT PREFIX BASE REGISTER WINDOW ON RANGE STEP P1D 5m "
    "\\u0041 \\uD800 \\ # é \x00 \ud800"
)
PARTS = st.sampled_from(WORDS.split())


def settle(text: str, parse: Callable[[str], object] = parse_query) -> None:
    """Parses the text or sees it refused as it should be, with a place and a line that can be sent."""
    refused: SparqlSyntax | Unsupported | None = None
    try:
        parse(text)
    except (SparqlSyntax, Unsupported) as error:
        refused = error
    assert refused is None or (refused.place and refused.excerpt.encode())


@settings(max_examples=150, deadline=None)
@given(st.lists(PARTS, max_size=30).map(" ".join) | st.text(max_size=40))
def test_garbage_is_refused_as_such(text: str) -> None:
    settle(text)
    settle(text, parse_registration)
    settle(f"SELECT * {{ {text} }}")
    settle(f"SELECT * FROM NAMED WINDOW {text} {{ WINDOW <w> {{ }} }}", parse_registration)
    settle(f"SELECT * FROM NAMED WINDOW <w> ON <s> [{text}] {{ WINDOW <w> {{ }} }}", parse_registration)
    settle(f"SELECT * {{ FILTER({text}) }}")


@settings(max_examples=300, deadline=None)
@given(st.sampled_from((*QUERIES, REGISTERED)), st.data())
def test_a_query_with_a_part_changed_parses_or_is_refused(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 8)))
    changed = text[:start] + data.draw(st.lists(PARTS, max_size=2).map("".join)) + text[end:]
    settle(changed)
    settle(changed, parse_registration)


@pytest.mark.parametrize("text", QUERIES)
def test_the_queries_that_are_changed_parse(text: str) -> None:
    parse_query(text)


def test_the_registration_that_is_changed_parses() -> None:
    assert len(parse_registration(REGISTERED).windows) == 2
