"""Templates, and the subscriptions that are made of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.harness import run
from tests.http.resources.test_routes import call, controlled
from triplewire.http.openapi.documents import PARAMETER_TYPES
from triplewire.http.resources.subscription_requests import SubscriptionRequest
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.http.resources.templates import parse_term_value
from triplewire.matching.shapes import lift
from triplewire.model import format_position
from triplewire.model.errors import (
    BadRequest,
    Conflict,
    InvalidField,
    NotFound,
    SparqlSyntax,
    TriplewireError,
    Unsupported,
)
from triplewire.model.terms import XSD, literal
from triplewire.sparql import parse_query
from triplewire.testing import TWIN_KINDS, Twin, open_twin

FORM = "SELECT ?o ?v {{ ?o <urn:by> {} ; <urn:value> ?v FILTER(?v > {}) }}"
ABOVE = {"sparql": FORM.format("$sensor", "$limit"), "parameters": {"sensor": {"type": "iri"}}}


@pytest.fixture(params=TWIN_KINDS)
def stores(request: pytest.FixtureRequest) -> Iterator[Twin]:
    with open_twin(request.param) as made:
        yield made


@pytest.fixture
def service(stores: Twin) -> SubscriptionManager:
    return SubscriptionManager(stores.registry, stores.clock)


def instance(service: SubscriptionManager, values: dict[str, Any], **more: Any) -> Any:  # noqa: ANN401
    wish = SubscriptionRequest.from_json({"template": "above", "values": values, "kind": "bindings", **more})
    return service.register([wish])[0]


def test_what_is_put_is_found_listed_and_removed(service: SubscriptionManager) -> None:
    made = service.templates.put("above", ABOVE)
    assert service.templates.find("above") == made
    assert service.templates.all() == [made]
    assert made.parameters == {"sensor": "iri", "limit": "term"}
    service.templates.remove("above")
    for verb in (service.templates.find, service.templates.remove):
        with pytest.raises(NotFound, match="above"):
            verb("above")


def test_an_instance_is_what_its_text_would_be(service: SubscriptionManager) -> None:
    service.templates.put("above", ABOVE)
    made = [instance(service, {"sensor": f"<urn:{number}>", "limit": number}) for number in range(3)]
    assert len({each.shape for each in made}) == 1
    for number, each in enumerate(made):
        lifted = lift(parse_query(FORM.format(f"<urn:{number}>", number)), solutions=True)
        assert (each.shape, each.constants) == (lifted.shape.key, lifted.constants)
        assert service.find(each.id) == each


def test_an_instance_keeps_the_text_of_which_it_was_made(service: SubscriptionManager) -> None:
    first = service.templates.put("above", ABOVE)
    made = instance(service, {"sensor": "urn:a", "limit": 5}, version=format_position(first.version))
    second = service.templates.put("above", {"sparql": "ASK { ?s <urn:p> $sensor, $limit }"})
    assert service.find(made.id) == made
    assert (made.sparql, made.template) == (ABOVE["sparql"], ("above", first.version))
    with pytest.raises(Conflict, match=format_position(second.version)):
        instance(service, {"sensor": "urn:a", "limit": 5}, version=format_position(first.version))
    service.templates.remove("above")
    assert service.find(made.id) == made
    with pytest.raises(NotFound):
        instance(service, {"sensor": "urn:a", "limit": 5})


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"sensor": "urn:a"}, "limit"),
        ({"sensor": "urn:a", "limit": 1, "other": 2}, "other"),
        ({"sensor": "urn:a", "limit": "five"}, "five"),
        ({"sensor": "urn:a", "limit": "<urn:a> <urn:b>"}, "urn:b"),
        ({"sensor": "urn:a", "limit": None}, "None"),
        ({"sensor": "urn:a", "limit": [1]}, "1"),
        ({"sensor": '"urn:a"', "limit": 1}, "not a valid iri"),
        ({"sensor": "not absolute", "limit": 1}, "not absolute"),
        ({"sensor": "urn:a> <urn:b", "limit": 1}, "urn:b"),
        ({"sensor": 5, "limit": 1}, "not a valid iri"),
    ],
)
def test_values_that_do_not_fit_are_told(values: dict[str, Any], told: str) -> None:
    with open_twin("memory") as stores:
        service = SubscriptionManager(stores.registry, stores.clock)
        service.templates.put("above", ABOVE)
        with pytest.raises(InvalidField, match=told) as raised:
            instance(service, values)
        assert raised.value.field == "values"


@pytest.mark.parametrize(
    ("value", "type", "term"),
    [
        ("<urn:a>", "term", "<urn:a>"),
        ("urn:a", "iri", "<urn:a>"),
        ('"a\\nb"@en', "literal", '"a\\nb"@en'),
        ("'a'", "term", '"a"'),
        ('a "b"', "string", '"a \\"b\\""'),
        (5, "term", literal("5", XSD + "integer")),
        (5, "double", literal("5", XSD + "double")),
        (5.5, "term", literal("5.5", XSD + "decimal")),
        (1e30, "term", literal("1e+30", XSD + "double")),
        ("7", "integer", literal("7", XSD + "integer")),
        (True, "boolean", literal("true", XSD + "boolean")),
        ("2026-01-01", "date", literal("2026-01-01", XSD + "date")),
        (f'"1"^^<{XSD}byte>', "literal", literal("1", XSD + "byte")),
        (5.5, "integer", None),
        (1e30, "decimal", None),
        ("seven", "integer", None),
        ("<urn:a>", "literal", None),
        ("2026-01-41T", "dateTime", None),
        (True, "integer", None),
        ({}, "string", None),
    ],
)
def test_a_value_is_the_term_that_it_means(value: object, type: str, term: str | None) -> None:
    assert type in PARAMETER_TYPES
    if term is not None:
        assert parse_term_value(value, type) == term
        return
    with pytest.raises(ValueError, match="is not a "):
        parse_term_value(value, type)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("a b", ABOVE, BadRequest),
        ("a", 5, BadRequest),
        ("a", {}, InvalidField),
        ("a", {"sparql": "ASK { ?s ?p $o }", "more": 1}, InvalidField),
        ("a", {"sparql": "ASK { ?s ?p $o }", "parameters": []}, InvalidField),
        ("a", {"sparql": "ASK { ?s ?p $o }", "parameters": {"x": {}}}, InvalidField),
        ("a", {"sparql": "ASK { ?s ?p $o }", "parameters": {"o": {"type": "number"}}}, InvalidField),
        ("a", {"sparql": "ASK { ?s ?p $o "}, SparqlSyntax),
        ("a", {"sparql": "ASK { $s ?p 1 }", "parameters": {"s": {"type": "literal"}}}, Unsupported),
        ("a", {"sparql": "ASK { ?s ?p $o BIND(1 AS ?o) }"}, TriplewireError),
        ("a", {"sparql": "ASK { ?s ?p ?x FILTER BOUND($o) }"}, Unsupported),
        ("a", {"sparql": "ASK { ?s ?p $o . VALUES ?o { 1 } }"}, Unsupported),
        ("a", {"sparql": "DESCRIBE $o"}, Unsupported),
    ],
)
def test_what_no_instance_could_be_made_of_is_refused(name: str, value: object, error: type[TriplewireError]) -> None:
    with open_twin("memory") as stores:
        with pytest.raises(error):
            SubscriptionManager(stores.registry, stores.clock).templates.put(name, value)
        assert stores.log.head() == 0


def test_a_parameter_is_not_selected_and_may_stand_anywhere() -> None:
    with open_twin("memory") as stores:
        service = SubscriptionManager(stores.registry, stores.clock)
        text = "SELECT * { GRAPH $g { $s $p $o } FILTER NOT EXISTS { ?x <urn:q> $s } FILTER(?x > $o) ?x <urn:r> 1 }"
        service.templates.put("above", {"sparql": text})
        made = instance(service, {"g": "<urn:g>", "s": "<urn:s>", "p": "<urn:p>", "o": 7})
        plain = text.replace("$g", "<urn:g>").replace("$s", "<urn:s>").replace("$p", "<urn:p>").replace("$o", "7")
        lifted = lift(parse_query(plain), solutions=True)
        assert (made.shape, made.constants) == (lifted.shape.key, lifted.constants)


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"template": "a", "sparql": "ASK {}"}, "template"),
        ({"template": 5}, "template"),
        ({"template": "a", "values": []}, "values"),
        ({"template": "a", "version": 5}, "version"),
        ({"sparql": "ASK {}", "values": {}}, "values"),
        ({"sparql": "ASK {}", "version": "0000000000000001"}, "version"),
    ],
)
def test_a_field_that_does_not_fit_is_named(wish: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidField, match=field) as raised:
        SubscriptionRequest.from_json(wish)
    assert raised.value.field == field


def test_over_http_it_is_put_listed_used_and_deleted() -> None:
    async def scene() -> None:
        async with controlled() as at:
            made = await call(at, "PUT", "/templates/above", 200, json=ABOVE)
            assert made["parameters"] == {"sensor": {"type": "iri"}, "limit": {"type": "term"}}
            assert await call(at, "GET", "/templates/above", 200) == made
            assert await call(at, "GET", "/templates", 200) == {"templates": [made]}
            wish = {"template": "above", "values": {"sensor": "urn:a", "limit": 5}, "version": made["version"]}
            found = await call(at, "POST", "/subscriptions", 201, json=wish)
            assert (found["template"], found["version"]) == ("above", made["version"])
            assert found["values"] == {"sensor": "<urn:a>", "limit": literal("5", XSD + "integer")}
            await call(at, "PUT", "/templates/above", 200, json=ABOVE)
            assert (await at.problem("POST", "/subscriptions", json=wish))["status"] == 409
            await call(at, "DELETE", "/templates/above", 204)
            assert (await at.problem("POST", "/subscriptions", json=wish))["status"] == 404
            assert (await at.problem("DELETE", "/templates/above"))["status"] == 404
            assert await call(at, "GET", f"/subscriptions/{found['id']}", 200) == {**found, "sharing": 1}

    run(scene())
