"""Generated conjunctions that the index may decide, and events with whatever is hard about terms."""

from __future__ import annotations

from typing import TypeAlias

from hypothesis import strategies as st

from triplewire.model import Event
from triplewire.model.terms import XSD, iri, literal

EX = "http://example.org/"
Texts: TypeAlias = st.SearchStrategy[str]

NODES = tuple(iri(EX + name) for name in ("a", "b", "c"))
PREDICATES = tuple(iri(EX + name) for name in ("p", "q", "v"))
TIMES = ("2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00", "2020-02-29T12:00:00.5Z", "2020-01-01T00:00:00")
VALUES = (
    *(
        literal(each, XSD + "integer")
        for each in ("0", "7", "-3", "007", "12345678901234567", "12345678901234568", "x")
    ),
    *(literal(each, XSD + "decimal") for each in ("7.0", "7.5", "-0.5", ".5", "0.1", "7.00000000000000000001")),
    *(literal(each, XSD + "double") for each in ("7", "1e1", "7.5E0", "INF", "NaN", "1e400", "1e-30")),
    *(literal(each, XSD + "float") for each in ("7", "0.1")),
    literal("7", XSD + "byte"),
    *(literal(each, XSD + "dateTime") for each in (*TIMES, "2020-13-01T00:00:00Z")),
    literal("2020-01-01", XSD + "date"),
    *(literal(each) for each in ("", "a", "b", "n", "ab", "a\\b", 'a"b', "a\nb", "a\n", "ä", "bä", "\U0001f600")),
    *(literal("ab", language=each) for each in ("en", "de", "en-GB")),
    literal("true", XSD + "boolean"),
    literal("x", EX + "type"),
)

_subjects = st.sampled_from(NODES)
_objects = st.sampled_from((*NODES, *VALUES))
_lines = st.tuples(_subjects, st.sampled_from(PREDICATES), _objects).map("\t".join)
events: st.SearchStrategy[list[Event]] = st.lists(
    st.lists(_lines, min_size=1, max_size=6, unique=True).map("\n".join), min_size=1, max_size=4
).map(lambda texts: [Event(f"{EX}event/{number}", text) for number, text in enumerate(texts)])

_variables = st.sampled_from(("?x", "?y", "?z", "?w"))
_any = st.one_of(_variables, _variables, _objects)
_pattern = st.tuples(
    st.one_of(_variables, _variables, _subjects),
    st.sampled_from((*PREDICATES, *PREDICATES, "?r")),
    _any,
).map(" ".join)
_measures = st.sampled_from([each for each in VALUES if XSD in each])
_texts = st.sampled_from([each for each in VALUES if each.endswith('"')])
_orders = st.sampled_from(("<", "<=", ">", ">=", "=", "!="))
_tests: Texts = st.one_of(
    st.tuples(_variables, _orders, _measures).map(" ".join),
    st.tuples(_measures, _orders, _variables).map(" ".join),
    st.tuples(_variables, st.sampled_from(("=", "!=")), _objects).map(" ".join),
    st.tuples(_variables, st.sampled_from(("IN", "NOT IN")), _objects, _objects).map(
        lambda given: f"{given[0]} {given[1]} ({given[2]}, {given[3]})"
    ),
    st.tuples(st.sampled_from(("STRSTARTS", "STRENDS")), _variables, _texts).map(
        lambda given: f"{given[0]}(STR({given[1]}), {given[2]})"
    ),
    st.tuples(st.sampled_from(("STRSTARTS", "STRENDS")), _variables, _texts).map(
        lambda given: f"{given[0]}({given[1]}, {given[2]})"
    ),
    st.tuples(st.sampled_from(("isIRI", "isLiteral", "isBlank", "BOUND")), _variables).map(
        lambda given: f"{given[0]}({given[1]})"
    ),
    st.tuples(_variables, st.sampled_from(("en", "EN", "de", ""))).map(
        lambda given: f'LANG({given[0]}) = "{given[1]}"'
    ),
    st.tuples(_variables, st.sampled_from(("integer", "string", "dateTime"))).map(
        lambda given: f"DATATYPE({given[0]}) = <{XSD}{given[1]}>"
    ),
    st.tuples(_variables, _objects).map(lambda given: f"sameTerm({given[0]}, {given[1]})"),
)
_conditions: Texts = st.recursive(
    _tests,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(("&&", "||")), inner).map(lambda each: f"({' '.join(each)})"),
        inner.map(lambda each: f"!({each})"),
    ),
    max_leaves=4,
)
_filters = st.lists(_conditions, max_size=2).map(lambda each: "".join(f" FILTER({one})" for one in each))
_bodies = st.tuples(st.lists(_pattern, min_size=1, max_size=3).map(" . ".join), _filters).map("".join)
queries: Texts = st.tuples(st.sampled_from(("{}", "{}", "GRAPH ?g {{ {} }}")), _bodies).map(
    lambda given: "SELECT * { " + given[0].format(given[1]) + " }"
)
