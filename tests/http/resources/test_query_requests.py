"""What a client says when it registers a continuous query, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from triplewire.http.openapi.documents import QueryRequestDocument
from triplewire.http.resources.query_requests import ContinuousQueryRequest
from triplewire.http.resources.subscription_requests import BackfillStart
from triplewire.model.errors import BadRequest, BodyTooLarge, InvalidField
from triplewire.model.subscriptions import LatePolicy, TimeDomain
from triplewire.sparql.syntax.queries import QUERY_BYTES
from triplewire.sparql.syntax.windows import QUERY_WINDOW_DAYS
from triplewire.storage.registry.subscriptions import SELECTOR_VALUES

TEXT = "SELECT * { ?s ?p ?o }"
WHOLE = {
    "query": TEXT,
    "name": "hot rooms",
    "semantics": "set",
    "streams": ["street", "home", "street"],
    "within": "PT10M",
    "span": 100,
    "from": "earliest",
    "time": "event",
    "lateness": 2.5,
    "late": "revise",
    "into": "alerts",
}


def test_every_field_is_taken_as_it_is_meant() -> None:
    found = ContinuousQueryRequest.from_json(WHOLE)
    assert found == ContinuousQueryRequest(
        TEXT,
        "hot rooms",
        distinct=True,
        streams=("home", "street"),
        within=600.0,
        span=100,
        begins=BackfillStart(position=0),
        time=TimeDomain.EVENT,
        lateness=2.5,
        late=LatePolicy.REVISE,
        into="alerts",
        given=frozenset(QueryRequestDocument.names()),
    )


def test_what_is_null_or_not_there_says_nothing() -> None:
    nothing = ContinuousQueryRequest(TEXT, given=frozenset({"query"}))
    assert ContinuousQueryRequest.from_json({"query": TEXT}) == nothing
    assert ContinuousQueryRequest.from_json(dict.fromkeys(QueryRequestDocument.names()) | {"query": TEXT}) == nothing
    assert ContinuousQueryRequest.from_json({"query": TEXT, "semantics": "bag", "streams": "a"}).streams == ("a",)


def test_a_text_has_the_rest_in_the_address() -> None:
    parameters = [(name, str(value)) for name, value in WHOLE.items() if name not in ("query", "streams")]
    streams = [("streams", "home"), ("streams", "street")]
    assert ContinuousQueryRequest.from_text(TEXT, [*parameters, *streams]) == ContinuousQueryRequest.from_json(WHOLE)
    assert ContinuousQueryRequest.from_text(TEXT, [("within", "1.5")]).within == 1.5


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("query", ""),
        ("query", 5),
        ("name", ""),
        ("name", "a\nb"),
        ("semantics", "multiset"),
        ("semantics", []),
        ("streams", []),
        ("streams", ["a b"]),
        ("streams", [5]),
        ("streams", ["a"] * (SELECTOR_VALUES + 1)),
        ("within", 0),
        ("within", -1),
        ("within", True),
        ("within", "PT0S"),
        ("within", "ten minutes"),
        ("within", float("nan")),
        ("within", float("inf")),
        ("within", QUERY_WINDOW_DAYS * 86_400 + 1),
        ("span", 0),
        ("span", 1.5),
        ("span", True),
        ("lateness", "-PT1S"),
        ("lateness", "P9999D"),
        ("time", "wall"),
        ("time", {}),
        ("late", "keep"),
        ("into", "a/b"),
        ("into", 5),
        ("from", "yesterday"),
        ("sparql", TEXT),
    ],
)
def test_what_does_not_fit_is_named(field: str, value: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidField) as raised:
        ContinuousQueryRequest.from_json({"query": TEXT, field: value})
    assert raised.value.field == field


@pytest.mark.parametrize("value", [5, [], "SELECT", None])
def test_what_is_no_object_is_refused(value: object) -> None:
    with pytest.raises(BadRequest, match="JSON object"):
        ContinuousQueryRequest.from_json(value)


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(BodyTooLarge):
        ContinuousQueryRequest.from_json({"query": "é" * QUERY_BYTES})


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ([("span", "x")], "span"),
        ([("span", "9" * 30)], "span"),
        ([("into", "a"), ("into", "b")], "into"),
        ([("query", TEXT)], "query"),
        ([("limit", "5")], "limit"),
    ],
)
def test_what_does_not_fit_in_an_address_is_named(parameters: list[tuple[str, str]], field: str) -> None:
    with pytest.raises(InvalidField) as raised:
        ContinuousQueryRequest.from_text(TEXT, parameters)
    assert raised.value.field == field
