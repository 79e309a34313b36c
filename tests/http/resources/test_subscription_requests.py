"""What a subscription may say, and what it is told where it does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from triplewire.http.resources.subscription_requests import SubscriptionRequest
from triplewire.matching.shape_requests import EventSelector, ShapeRequest
from triplewire.model import Kind
from triplewire.model.errors import BadRequest, BodyTooLarge, InvalidField
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.sparql.syntax.queries import QUERY_BYTES
from triplewire.storage.registry.subscriptions import LEASE_SECONDS_MOST, SELECTOR_VALUES


@pytest.mark.parametrize("value", [None, [], "ASK {}", 5])
def test_what_is_no_object_is_no_wish(value: object) -> None:
    with pytest.raises(BadRequest):
        SubscriptionRequest.from_json(value)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({}, "sparql"),
        ({"sparql": 1}, "sparql"),
        ({"sparql": " "}, "sparql"),
        ({"sparql": "", "stream": "a"}, "sparql"),
        ({"sparql": "ASK {}", "kind": "loud"}, "kind"),
        ({"sparql": "ASK {}", "kind": ["signal"]}, "kind"),
        ({"sparql": "ASK {}", "stream": "-"}, "stream"),
        ({"sparql": "ASK {}", "stream": 5}, "stream"),
        ({"sparql": "ASK {}", "stream": []}, "stream"),
        ({"sparql": "ASK {}", "stream": ["a", "-"]}, "stream"),
        ({"source": ["a", 5]}, "source"),
        ({"source": "a\nb"}, "source"),
        ({"application": ""}, "application"),
        ({"vocabulary": "x" * (HEADER_CHARACTERS + 1)}, "vocabulary"),
        ({"vocabulary": [f"urn:{number}" for number in range(SELECTOR_VALUES + 1)]}, "vocabulary"),
        ({"sparql": "ASK {}", "ttl": 1}, "ttl"),
        ({"sparql": "ASK {}", "ttl": LEASE_SECONDS_MOST + 1}, "ttl"),
        ({"sparql": "ASK {}", "ttl": True}, "ttl"),
        ({"sparql": "ASK {}", "ttl": "60"}, "ttl"),
        ({"sparql": "ASK {}", "entailment": "owl"}, "entailment"),
        ({"stream": "a", "entailment": "rdfs"}, "entailment"),
        ({"sparql": "ASK {}", "filter": []}, "filter"),
        ({"template": "a", "filters": [[]]}, "filters"),
        ({"prefixes": {"a": "urn:"}}, "prefixes"),
        ({"filter": [], "entailment": "rdfs"}, "entailment"),
        ({"sparql": "ASK {}", "mood": "x"}, "mood"),
    ],
)
def test_a_field_that_does_not_fit_is_named(value: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidField, match=field) as raised:
        SubscriptionRequest.from_json(value)
    assert raised.value.field == field


def test_a_query_over_the_limit_is_too_large() -> None:
    with pytest.raises(BodyTooLarge):
        SubscriptionRequest.from_json({"sparql": "#" * (QUERY_BYTES + 1)})


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"filter": 5}, "filter"),
        ({"filter": [], "filters": [[]]}, "filter"),
        ({"filter": [{"attribute": "urn:a", "op": "=="}]}, "filter[0]"),
        ({"filters": [[], [{"attribute": "urn:a", "op": "??", "value": 1}]]}, "filters[1][0]"),
        ({"filter": [], "prefixes": []}, "prefixes"),
    ],
)
def test_a_filter_that_is_none_is_told_with_its_place(value: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidField) as raised:
        _ = SubscriptionRequest.from_json(value).asked
    assert raised.value.field.startswith(field)


def test_a_field_that_is_null_is_not_there() -> None:
    assert SubscriptionRequest.from_json({"sparql": "ASK {}", "kind": None, "stream": None}) == SubscriptionRequest(
        "ASK {}", Kind.SIGNAL
    )


def test_lists_that_name_the_same_ask_the_same() -> None:
    one = SubscriptionRequest.from_json({"kind": "event", "stream": ["b", "a", "b"], "source": "s"})
    assert one == SubscriptionRequest.from_json({"kind": "event", "stream": ["a", "b"], "source": "s"})
    assert one.asked == ShapeRequest(None, False, EventSelector(stream=("a", "b"), source=("s",)))
