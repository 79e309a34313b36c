"""What an address may say of a stream, and what is told to those who say it wrongly."""

from __future__ import annotations

import pytest

from triplewire.http.openapi.stream_operations import STREAM_FILTER_VALUES
from triplewire.http.stream_filters.parameters import FILTER_PARAMETERS, PluginCall, StreamFilter, parse_stream_filter
from triplewire.model.errors import BadRequest, InputError, SparqlSyntax, Unsupported
from triplewire.rdf.terms import HEADER_CHARACTERS

ASK = "ASK { ?s <urn:p> ?o FILTER(?o > 3) }"


def asked(*given: tuple[str, str]) -> StreamFilter:
    found = parse_stream_filter(given)
    assert found is not None
    return found


@pytest.mark.parametrize("given", [[], [("after", "now")], [("format", "sse"), ("linger", "0"), ("mode", "poll")]])
def test_an_address_that_says_nothing_of_it_asks_for_everything(given: list[tuple[str, str]]) -> None:
    assert parse_stream_filter(given) is None


def test_values_of_one_parameter_are_alternatives_in_whatever_order() -> None:
    one = asked(("source", "b"), ("source", "a"), ("source", "a"), ("application", "x"), ("after", "now"))
    assert one == asked(("application", "x"), ("source", "a"), ("source", "b"))
    assert (one.source, one.application, hash(one)) == (("a", "b"), ("x",), hash(asked(*_pairs(one))))


def _pairs(sieve: StreamFilter) -> list[tuple[str, str]]:
    return [("source", each) for each in sieve.source] + [("application", each) for each in sieve.application]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ASK, "ask where{?x<urn:p>?value.filter(?value>3)}"),
        ("ASK { ?s <urn:p> ?o . ?s <urn:q> ?v }", "ASK { ?a <urn:q> ?b . ?a <urn:p> ?c }"),
        ("PREFIX e: <urn:> ASK { ?s e:p 'x' }", 'ASK { ?o <urn:p> "x" }'),
    ],
)
def test_queries_that_ask_the_same_are_equal(one: str, other: str) -> None:
    assert asked(("ask", one)) == asked(("ask", other))
    assert asked(("ask", one), ("ask", other)) == asked(("ask", one))


def test_queries_that_differ_in_a_constant_are_of_one_shape_and_not_equal() -> None:
    (one,), (other,) = asked(("ask", ASK)).asks, asked(("ask", ASK.replace("3", "4"))).asks
    assert one != other
    assert one.shape == other.shape


def test_a_filter_has_its_parameters_in_order() -> None:
    found = asked(("filter.b", "2"), ("filter", "some"), ("filter.a", "1"))
    assert found.plugin == PluginCall("some", (("a", "1"), ("b", "2")))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([("sources", "a")], "no parameter sources"),
        ([("Source", "a")], "no parameter Source"),
        ([("vocab", "http://a/")], "no parameter vocab"),
        ([("app", "x")], "no parameter app"),
        ([("filter_n", "x")], "no parameter filter_n"),
        ([("source", "")], "the parameter source is printable text"),
        ([("application", "a\nb")], "the parameter application is printable text"),
        ([("source", "a" * (HEADER_CHARACTERS + 1))], "the parameter source is printable text"),
        ([("source", str(each)) for each in range(STREAM_FILTER_VALUES + 1)], "the parameter source is given 65 times"),
        ([("vocabulary", "<http://a/>")], "the parameter vocabulary is the prefix of an IRI"),
        ([("vocabulary", "sosa")], "the parameter vocabulary is the prefix of an IRI"),
        ([("ask", " ")], "the parameter ask is an ASK query"),
        ([("ask", "SELECT * { ?s ?p ?o }")], "the parameter ask is an ASK query, not SELECT"),
        ([("ask", ASK)] * (STREAM_FILTER_VALUES + 1), "the parameter ask is given 65 times"),
        ([("filter", "a"), ("filter", "b")], "the parameter filter is given 2 times"),
        ([("filter.n", "1")], "the parameter filter.n needs filter"),
        ([("filter", "a"), ("filter.n", "1"), ("filter.n", "2")], "the parameter filter.n is given 2 times"),
        ([("filter", "a"), ("filter.", "1")], "'filter.' is no parameter of a filter"),
        ([("filter", "a"), ("filter.b-c", "1")], "'filter.b-c' is no parameter of a filter"),
        (
            [("filter", "a"), *((f"filter.p{each}", "1") for each in range(FILTER_PARAMETERS + 1))],
            "17 parameters",
        ),
    ],
)
def test_what_is_wrong_is_named(given: list[tuple[str, str]], told: str) -> None:
    with pytest.raises(BadRequest, match="^" + told.replace("(", r"\(") if told[0] == "t" else told):
        parse_stream_filter(given)


def test_a_query_that_does_not_parse_is_told_with_the_place() -> None:
    with pytest.raises(SparqlSyntax, match="the parameter ask") as caught:
        parse_stream_filter([("ask", "ASK {\n ?s <urn:p> }")])
    assert caught.value.place is not None
    assert caught.value.place.line == 2


@pytest.mark.parametrize("query", ["ASK { SERVICE <http://x/> { ?s ?p ?o } }", "ASK FROM <urn:g> { ?s ?p ?o }"])
def test_what_no_event_can_be_asked_is_refused(query: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_stream_filter([("ask", query)])
    assert isinstance(caught.value, Unsupported | BadRequest)
