"""Parsing of continuous queries, and refusals with their position."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sparql.test_refusals import cases
from triplewire.model.errors import BodyTooLarge, SparqlSyntax, TextPosition, Unsupported
from triplewire.model.subscriptions import ReportStrategy
from triplewire.sparql import Apply, Registration, WindowClause, parse_query, parse_registration
from triplewire.sparql.algebra import Basic, Const, Dataset, Filter, Join, Pattern, Select, Var, Window
from triplewire.sparql.syntax.queries import QUERY_BYTES
from triplewire.sparql.syntax.windows import QUERY_WINDOWS

SECOND = 1_000_000
TRIPLE = Basic((Pattern(Var("s"), Var("p"), Var("o")),))


def window(extent: str, stream: str = "<home>", prologue: str = "") -> WindowClause:
    text = f"{prologue} SELECT * FROM NAMED WINDOW <urn:w> ON {stream} [{extent}] {{ WINDOW <urn:w> {{ ?s ?p ?o }} }}"
    (found,) = parse_registration(text).windows
    return found


@pytest.mark.parametrize("case", cases("registrations.toml"))
def test_an_error_says_where_it_is_and_what_was_expected(case: dict[str, Any]) -> None:
    with pytest.raises(SparqlSyntax) as refused:
        parse_registration(case["query"])
    assert case["expected"] in str(refused.value)
    assert refused.value.place == TextPosition(*case["place"])


@pytest.mark.parametrize("case", cases("unregistered.toml"))
def test_a_construct_outside_the_language_is_named_with_its_place(case: dict[str, Any]) -> None:
    with pytest.raises(Unsupported) as refused:
        parse_registration(case["query"])
    assert (refused.value.construct, refused.value.place) == (case["construct"], TextPosition(*case["place"]))


def test_all_parts_of_a_registration() -> None:
    found = parse_registration(
        """
        BASE <http://example.org/>
        PREFIX : <http://example.org/>
        REGISTER ISTREAM <hot> AS
        SELECT ?s
        FROM <known>
        FROM NAMED WINDOW :w1 ON <home> [RANGE PT10M STEP PT1M]
        FROM NAMED WINDOW <w2> ON STREAM <http://localhost:8080/streams/city> [TRIPLES 100 STEP 10]
        FROM NAMED :rooms
        WHERE { WINDOW <w1> { ?s ?p ?o } WINDOW :w2 { ?s ?p ?o FILTER(?o > 1) } ?s ?p ?o }
        """
    )
    assert (found.name, found.report) == ("hot", ReportStrategy.NEW)
    assert found.windows == (
        WindowClause("http://example.org/w1", "home", "time", 600 * SECOND, 60 * SECOND),
        WindowClause("http://example.org/w2", "city", "count", 100, 10),
    )
    assert found.query.dataset == Dataset(("<http://example.org/known>",), ("<http://example.org/rooms>",))
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert isinstance(found.query.where, Select)
    assert isinstance(found.query.where.inner, Join)
    assert found.query.where.inner.left == Join(
        Window("http://example.org/w1", TRIPLE),
        Window("http://example.org/w2", Filter(TRIPLE, (Apply(">", (Var("o"), Const(one))),))),
    )


def test_keywords_may_be_small() -> None:
    clause = "from named window <w> on stream <home> [range 1m step 1s]"
    found = parse_registration(f"register dstream <out> as select * {clause} {{ window <w> {{}} }}")
    assert (found.name, found.report) == ("out", ReportStrategy.OLD)
    assert found.windows == (WindowClause("w", "home", "time", 60 * SECOND, SECOND),)


def test_without_windows_it_is_plain_sparql() -> None:
    for text in ("SELECT ?s { ?s ?p ?o OPTIONAL { ?s ?q 1 } }", "ASK { ?s ?p 1 }", "DESCRIBE <urn:x>"):
        assert parse_registration(text) == Registration(parse_query(text))


def test_without_register_all_of_each_window_is_told() -> None:
    text = "CONSTRUCT { ?s ?p 1 } FROM NAMED WINDOW <w> ON <home> [SESSION PT5M] WHERE { WINDOW <w> { ?s ?p ?o } }"
    found = parse_registration(text)
    assert (found.name, found.report) == (None, ReportStrategy.ALL)


def test_sparql_knows_no_windows() -> None:
    for text in ("SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE 1s] {}", "SELECT * { WINDOW <urn:w> {} }", "REGISTER"):
        with pytest.raises(SparqlSyntax):
            parse_query(text)


@pytest.mark.parametrize(
    ("extent", "kind", "range_", "step"),
    [
        ("RANGE PT10M STEP PT1M", "time", 600 * SECOND, 60 * SECOND),
        ("RANGE PT10M", "time", 600 * SECOND, 600 * SECOND),
        ("RANGE PT10M TUMBLING", "time", 600 * SECOND, 600 * SECOND),
        ("RANGE PT1M STEP PT10M", "time", 60 * SECOND, 600 * SECOND),
        ("RANGE P1DT1H1M1.5S", "time", 90_061_500_000, 90_061_500_000),
        ("RANGE PT0.000001S", "time", 1, 1),
        ("RANGE P366D", "time", 366 * 86_400 * SECOND, 366 * 86_400 * SECOND),
        ("RANGE 1d STEP 1.5h", "time", 86_400 * SECOND, 5_400 * SECOND),
        ("RANGE 30s STEP 500ms", "time", 30 * SECOND, 500_000),
        ("RANGE TRIPLES 100 STEP 10", "count", 100, 10),
        ("RANGE TRIPLES 100", "count", 100, 100),
        ("TRIPLES 100 STEP 10", "count", 100, 10),
        ("TRIPLES 007 TUMBLING", "count", 7, 7),
        ("TRIPLES 10 STEP 1000000", "count", 10, 1_000_000),
        ("SESSION PT5M", "session", 300 * SECOND, 300 * SECOND),
        ("SESSION 90s", "session", 90 * SECOND, 90 * SECOND),
    ],
)
def test_extents(extent: str, kind: Literal["time", "count", "session"], range_: int, step: int) -> None:
    assert window(extent) == WindowClause("urn:w", "home", kind, range_, step)


@pytest.mark.parametrize(
    "stream",
    ["<home>", "<http://example.org/streams/home>", "<urn:x/streams/home>", "s:home"],
)
def test_streams_are_named_or_addressed_and_never_relative_to_a_base(stream: str) -> None:
    prologue = "BASE <http://example.org/streams/other/> PREFIX s: <https://example.org/a/streams/>"
    assert window("RANGE 1s", stream, prologue).stream == "home"


@given(st.integers(1, 300), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999_999))
def test_durations_of_xsd(days: int, hours: int, minutes: int, seconds: int, micros: int) -> None:
    text = f"P{days}DT{hours}H{minutes}M{seconds}.{micros:06}S"
    expected = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * SECOND + micros
    assert window(f"RANGE {text} STEP {text}").range == expected


@given(st.text("PTDHMS0123456789.-dhms ", max_size=12))
def test_what_is_no_duration_is_refused_and_nothing_else_happens(text: str) -> None:
    try:
        assert window(f"RANGE {text}").range > 0
    except (SparqlSyntax, Unsupported) as refused:
        _check_place(refused)


def _check_place(refused: SparqlSyntax | Unsupported) -> None:
    assert refused.place is not None


def test_windows_over_the_limit_are_refused_where_they_start() -> None:
    declared = "\n".join(f"FROM NAMED WINDOW <w{each}> ON <s> [RANGE 1s]" for each in range(QUERY_WINDOWS + 1))
    with pytest.raises(Unsupported, match="more than 16 windows") as refused:
        parse_registration(f"SELECT *\n{declared}\n{{ WINDOW <w0> {{ }} }}")
    assert refused.value.place == TextPosition(QUERY_WINDOWS + 2, 12)


def test_a_text_over_the_limit_is_not_read() -> None:
    with pytest.raises(BodyTooLarge):
        parse_registration("#" * (QUERY_BYTES + 1))
