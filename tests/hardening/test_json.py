"""Threat: JSON that is nested until whoever reads it has no stack left, or that says numbers and texts that its
reader
cannot write again. It ends an edge, or is a 500 that fills its log. What stops it: depth is limited before a parser
sees it, in every place at which JSON comes in.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tests.hardening.wires import alive
from tests.http.harness import house, run
from triplewire.http.app import EdgeParts
from triplewire.http.resources.explain import SubscriptionExplainer
from triplewire.http.resources.ontologies import OntologyManager
from triplewire.http.resources.routes import registry_routes
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.rdf.checks import NESTING


def with_control(parts: EdgeParts) -> EdgeParts:
    subscriptions = SubscriptionManager(parts.registry, parts.clock)
    insights = SubscriptionExplainer(subscriptions, parts.registry, parts.log, parts.clock)
    return replace(parts, routes=registry_routes(subscriptions, OntologyManager(parts.registry), insights))


CLOUD = '{{"specversion":"1.0","id":"1","source":"/a","type":"t","data":{}}}'
DOORS = {
    "JSON-LD": ("/streams/a", "application/ld+json", '{{"@id":"x:s","x:p":{}}}'),
    "a line": ("/streams/a", "application/x-ndjson", '{{"@id":"x:s","x:p":{}}}'),
    "a message": ("/streams/a", "application/x-ndjson", '{{"body":{}}}'),
    "headers of a message": ("/streams/a", "application/x-ndjson", '{{"body":"<x:s> a 1 .","headers":{{"a":{}}}}}'),
    "a CloudEvent": ("/streams/a", "application/cloudevents+json", CLOUD),
    "CloudEvents": ("/streams/a", "application/cloudevents-batch+json", f"[{CLOUD}]"),
    "a subscription": ("/subscriptions", "application/json", '{{"sparql":{}}}'),
    "filters": ("/subscriptions", "application/json", '{{"filters":[{}]}}'),
    "a bulk": ("/subscriptions", "application/x-ndjson", '{{"sparql":{}}}'),
    "filters of a bulk": ("/subscriptions", "application/x-ndjson", '{{"filters":[{}]}}'),
}


def deep(levels: int, opening: str, closing: str) -> str:
    return opening * levels + "1" + closing * levels


LEVELS = (NESTING + 1, 300, 900, 100_000)
"""Parsers and writers give up at different depths."""


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_json_that_is_too_deep_is_refused(door: tuple[str, str, str]) -> None:
    path, media_type, template = door

    async def scene() -> None:
        async with house(change=with_control) as home:
            for levels, (opening, closing) in product(LEVELS, (("[", "]"), ('{"a":', "}"))):
                text = template.format(deep(levels, opening, closing))
                headers = {"Content-Type": media_type}
                async with home.session.post(home.url + path, data=text, headers=headers) as response:
                    told = await response.text()
                    refused = 400 <= response.status < 500 or '"error"' in told or '"status":4' in told
                    assert refused, (response.status, told[:500])
            assert home.twin.log.head() == 0
            await alive(home)

    run(scene())


def test_a_message_of_a_listener_that_is_too_deep_is_told_so() -> None:
    async def scene() -> None:
        async with house() as home, home.session.ws_connect(home.url + "/streams/a") as socket:
            await socket.receive_json()
            await socket.send_str('{"say":' + deep(900, "[", "]") + "}")
            assert "nested deeper" in (await socket.receive_json())["problem"]["detail"]

    run(scene())
