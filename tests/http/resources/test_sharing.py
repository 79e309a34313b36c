"""How many subscriptions ask the same."""

from __future__ import annotations

import pytest

from tests.http.harness import run
from tests.http.resources.test_routes import call, controlled
from triplewire.http.resources.subscription_requests import SubscriptionRequest
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.model import Kind
from triplewire.testing import TWIN_KINDS, open_twin, publication

ONE = "ASK { ?s <urn:p> <urn:a> ; <urn:q> ?v FILTER(?v > 3) }"
SAME = "PREFIX e: <urn:> ASK { ?x e:q ?y . ?x e:p e:a FILTER(?y > 3) }"
OTHER = "ASK { ?s <urn:p> <urn:b> ; <urn:q> ?v FILTER(?v > 3) }"


@pytest.mark.parametrize("kind", TWIN_KINDS)
@pytest.mark.parametrize("told", [True, False])
def test_those_that_mean_the_same_are_counted_together(kind: str, told: bool) -> None:
    with open_twin(kind) as stores:
        service = SubscriptionManager(stores.registry, stores.clock, head=stores.log.head if told else None)
        first, second, other = service.register([SubscriptionRequest(text, Kind.SIGNAL) for text in (ONE, SAME, OTHER)])
        assert (first.shape, first.constants) == (second.shape, second.constants)
        assert [service.sharing.count(each.id) for each in (first, second, other)] == [2, 2, 1]
        stores.log.append([publication(1)])
        (third,) = service.register([SubscriptionRequest(ONE, Kind.EVENT)])
        service.end(second.id)
        assert [service.sharing.count(each.id) for each in (first, second, other, third)] == [2, 0, 1, 2]


def test_it_is_told_of_one() -> None:
    async def scene() -> None:
        async with controlled() as at:
            made = await call(at, "POST", "/subscriptions", 201, json=[{"sparql": ONE}, {"sparql": SAME}])
            for each in made:
                assert (await call(at, "GET", f"/subscriptions/{each['id']}", 200))["sharing"] == 2

    run(scene())
