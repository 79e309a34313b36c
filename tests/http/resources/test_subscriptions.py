"""Making, seeing and ending subscriptions."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest

from triplewire.http.resources.subscription_requests import SubscriptionRequest
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.matching.shapes import Shape
from triplewire.model import Kind
from triplewire.model.errors import NotFound, SparqlSyntax, TriplewireError, Unsupported
from triplewire.model.terms import XSD
from triplewire.storage.registry.subscriptions import SHAPE
from triplewire.testing import TWIN_KINDS, Twin, open_twin, publication

QUERY = 'SELECT ?s {{ ?s <urn:p> "{}" }}'


@pytest.fixture(params=TWIN_KINDS)
def stores(request: pytest.FixtureRequest) -> Iterator[Twin]:
    with open_twin(request.param) as made:
        yield made


def wishes(*constants: str, kind: Kind = Kind.BINDINGS) -> list[SubscriptionRequest]:
    return [SubscriptionRequest(QUERY.format(constant), kind) for constant in constants]


def test_what_was_made_is_found_with_its_position(stores: Twin) -> None:
    service = SubscriptionManager(stores.registry, stores.clock)
    (before,) = stores.log.append([publication(1)])[0]
    (made,) = service.register([SubscriptionRequest(QUERY.format("a"), Kind.EVENT, "weather")])
    (after,) = stores.log.append([publication(2)])[0]
    assert before < made.since < after
    assert service.find(made.id) == made
    assert (made.kind, made.stream, made.created) == (Kind.EVENT, "weather", stores.clock.now())


def test_one_shape_serves_all_that_differ_in_constants_and_comes_before_them(stores: Twin) -> None:
    service = SubscriptionManager(stores.registry, stores.clock)
    first, second = service.register(wishes("a", "b"))
    (third,) = service.register(wishes("c"))
    assert len({first.shape, second.shape, third.shape}) == 1
    (shape,) = stores.registry.list(SHAPE)
    assert shape.position < first.since
    assert shape.value is not None
    assert Shape.from_value(shape.value).key == first.shape
    assert [each.constants for each in (first, second, third)] == [('"a"',), ('"b"',), ('"c"',)]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SELECT nonsense", SparqlSyntax),
        ("SELECT * { ?s <urn:p> ?o . SERVICE <urn:x> { ?s <urn:q> ?o } }", Unsupported),
    ],
)
def test_a_query_that_cannot_be_makes_nothing_of_its_group(
    stores: Twin, text: str, error: type[TriplewireError]
) -> None:
    service = SubscriptionManager(stores.registry, stores.clock)
    with pytest.raises(error):
        service.register([*wishes("a"), SubscriptionRequest(text, Kind.SIGNAL)])
    assert stores.log.head() == 0


def test_filters_of_one_form_have_one_shape_and_go_with_streams(stores: Twin) -> None:
    service = SubscriptionManager(stores.registry, stores.clock)
    form = '{"filter": [{"attribute": "urn:pages", "op": "<", "value": %d}], "stream": "papers"}'
    first, second = service.register([SubscriptionRequest.from_json(orjson.loads(form % number)) for number in (5, 6)])
    assert first.shape == second.shape
    assert set(first.constants) ^ set(second.constants) == {f'"{n}"^^<{XSD}integer>' for n in (5, 6)}
    assert service.find(first.id) == first


def test_an_ended_one_is_gone_and_cannot_end_twice(stores: Twin) -> None:
    service = SubscriptionManager(stores.registry, stores.clock)
    (made,) = service.register(wishes("a"))
    service.end(made.id)
    with pytest.raises(NotFound, match=made.id):
        service.find(made.id)
    with pytest.raises(NotFound):
        service.end(made.id)
    assert service.page().items == []


def test_pages_follow_each_other_until_the_last(stores: Twin) -> None:
    service = SubscriptionManager(stores.registry, stores.clock)
    made = service.register(wishes("a", "b", "c", "d"))
    first = service.page(limit=3)
    assert (first.items, first.next) == (made[:3], made[2].since)
    second = service.page(after=made[2].since, limit=3)
    assert (second.items, second.next) == (made[3:], None)
