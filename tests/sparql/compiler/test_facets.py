"""Facets that an engine computes from a term's text, against the facts that Python derives."""

from __future__ import annotations

import math
from datetime import datetime

import duckdb
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from tests.sparql.worlds import World, run
from triplewire.model.terms import RDF_LANG_STRING, XSD, XSD_STRING
from triplewire.sparql import FACETS, QUADS, explode, facets_of, to_sql
from triplewire.sparql.constants import parse_constant

TERMS = {
    "<http://example.org/a>": ("iri", None, None, None, None),
    '"a"': ("literal", XSD_STRING, None, None, None),
    '""': ("literal", XSD_STRING, None, None, None),
    '"a\\"^^<x>"': ("literal", XSD_STRING, None, None, None),
    '"a\\"@en"@fr-ca': ("literal", RDF_LANG_STRING, "fr-ca", None, None),
    f'"21.5"^^<{XSD}decimal>': ("literal", XSD + "decimal", None, 21.5, None),
    f'"+021"^^<{XSD}integer>': ("literal", XSD + "integer", None, 21.0, None),
    f'"-7"^^<{XSD}negativeInteger>': ("literal", XSD + "negativeInteger", None, -7.0, None),
    f'"1e3"^^<{XSD}double>': ("literal", XSD + "double", None, 1000.0, None),
    f'"0.1"^^<{XSD}float>': ("literal", XSD + "float", None, 0.10000000149011612, None),
    f'"INF"^^<{XSD}double>': ("literal", XSD + "double", None, math.inf, None),
    f'"-INF"^^<{XSD}float>': ("literal", XSD + "float", None, -math.inf, None),
    f'"1e3"^^<{XSD}decimal>': ("literal", XSD + "decimal", None, None, None),
    f'"1.0"^^<{XSD}integer>': ("literal", XSD + "integer", None, None, None),
    f'" 1"^^<{XSD}integer>': ("literal", XSD + "integer", None, None, None),
    f'"1\\n"^^<{XSD}integer>': ("literal", XSD + "integer", None, None, None),
    f'"٣"^^<{XSD}integer>': ("literal", XSD + "integer", None, None, None),
    f'"infinity"^^<{XSD}double>': ("literal", XSD + "double", None, None, None),
    f'"1_000"^^<{XSD}double>': ("literal", XSD + "double", None, None, None),
    f'"1"^^<{XSD}boolean>': ("literal", XSD + "boolean", None, None, None),
    '"1"^^<http://example.org/integer>': ("literal", "http://example.org/integer", None, None, None),
    f'"2020-01-02T03:04:05.678Z"^^<{XSD}dateTime>': (
        *("literal", XSD + "dateTime", None, None),
        datetime(2020, 1, 2, 3, 4, 5, 678_000),
    ),
    f'"2020-01-02T03:04:05+02:30"^^<{XSD}dateTime>': (
        *("literal", XSD + "dateTime", None, None),
        datetime(2020, 1, 2, 0, 34, 5),
    ),
    f'"2020-01-02T03:04:05"^^<{XSD}dateTime>': (
        *("literal", XSD + "dateTime", None, None),
        datetime(2020, 1, 2, 3, 4, 5),
    ),
    f'"2020-01-01T24:00:00Z"^^<{XSD}dateTime>': (
        *("literal", XSD + "dateTime", None, None),
        datetime(2020, 1, 2),
    ),
    f'"2020-01-02"^^<{XSD}date>': ("literal", XSD + "date", None, None, datetime(2020, 1, 2)),
    f'"2020-01-02-01:00"^^<{XSD}date>': ("literal", XSD + "date", None, None, datetime(2020, 1, 2, 1)),
    f'"2020-01-02 03:04:05"^^<{XSD}dateTime>': ("literal", XSD + "dateTime", None, None, None),
    f'"2020-02-30T00:00:00Z"^^<{XSD}dateTime>': ("literal", XSD + "dateTime", None, None, None),
    f'"2020-01-02T03:04Z"^^<{XSD}dateTime>': ("literal", XSD + "dateTime", None, None, None),
    f'"today"^^<{XSD}date>': ("literal", XSD + "date", None, None, None),
}


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def computed(connection: duckdb.DuckDBPyConnection, terms: list[str]) -> list[tuple[object, ...]]:
    facets = ", ".join(to_sql(sql, "duckdb") for sql in facets_of(exp.column("term")).values())
    rows = ", ".join(f"({exp.Literal.string(term).sql('duckdb')})" for term in terms)
    return run(connection, f"SELECT {facets} FROM (VALUES {rows}) AS t(term)")


def test_facets_of_chosen_terms(connection: duckdb.DuckDBPyConnection) -> None:
    found = computed(connection, list(TERMS))
    assert dict(zip(TERMS, found, strict=True)) == TERMS


def test_not_a_number_is_a_number(connection: duckdb.DuckDBPyConnection) -> None:
    [[*_, number, _]] = computed(connection, [f'"NaN"^^<{XSD}double>'])
    assert isinstance(number, float)
    assert math.isnan(number)


@pytest.mark.parametrize("term", TERMS)
def test_constants_have_the_same_facets(term: str) -> None:
    known = parse_constant(term)
    kind = "iri" if known.datatype is None else "literal"
    assert (kind, known.datatype, known.language, known.number, known.time) == TERMS[term]


lexicals = st.text(st.sampled_from("0123456789.+-eE INFa_"), max_size=8)
names = st.sampled_from(("integer", "decimal", "float", "double", "byte", "string"))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(lexicals, names), min_size=40, max_size=40))
def test_engine_and_compiler_agree_on_what_is_a_number(found: list[tuple[str, str]]) -> None:
    terms = [str(ox.Literal(lexical, datatype=ox.NamedNode(XSD + name))) for lexical, name in found]
    numbers = [row[3] for row in computed(duckdb.connect(config={"threads": 1}), terms)]
    assert [repr(number) for number in numbers] == [repr(parse_constant(term).number) for term in terms]


def test_quads_are_numbered_lines_with_their_event() -> None:
    world = World.read(':e1 { :a :b :c . :a :b "1" } :e2 { :a :b 2 }')
    rows = run(world.relations(), "SELECT position, quad, graph, subject, object, stream FROM quads ORDER BY 1, 2")
    example = "<http://example.org/"
    assert rows == [
        (1, 0, f"{example}e1>", f"{example}a>", f"{example}c>", "city"),
        (1, 1, f"{example}e1>", f"{example}a>", '"1"', "city"),
        (2, 0, f"{example}e2>", f"{example}a>", f'"2"^^<{XSD}integer>', "city"),
    ]


def test_quads_have_the_columns_and_types_of_the_relation() -> None:
    described = run(World.read(":e { :a :b :c }").relations(), "DESCRIBE quads")
    types = {
        "position": "BIGINT",
        "quad": "INTEGER",
        **{f"object_{name}": kind for name, kind in FACETS.items()},
        "time": "TIMESTAMP",
        "received": "TIMESTAMP",
    }
    assert [(name, kind) for name, kind, *_ in described] == [(name, types.get(name, "VARCHAR")) for name in QUADS]


def test_only_the_columns_that_are_asked_for_are_made() -> None:
    sql = to_sql(explode(columns=["object", "position"]), "duckdb")
    rows = World.read(":e { :a :b :c }").relations().execute(sql)
    assert [each[0] for each in rows.description or ()] == ["position", "object"]
    assert "object_" not in sql
    rows.fetchall()


def test_a_column_that_quads_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="object_colour"):
        explode(columns=["object_colour"])
