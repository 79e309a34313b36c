"""Threat: somebody puts the end of a line, and another line after it, into what an edge repeats: an address, a name,
a
header. Told again in a header it begins another header, or another answer, in a cache or a browser of others; in an
event stream another message; in a log a record of something that did not happen. What stops it: names are checked
where
they come in, addresses stay encoded, and nothing that ends a line is written where lines count.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from tests.hardening.wires import alive, wire
from tests.http.harness import body, house, run
from triplewire.config.logs import JsonFormatter, TextFormatter
from triplewire.http.app import EdgeParts
from triplewire.http.resources.explain import SubscriptionExplainer
from triplewire.http.resources.ontologies import OntologyManager
from triplewire.http.resources.routes import registry_routes
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.testing.samples import event

EVIL = "%0d%0aX-Evil:%20yes%0d%0a%0d%0aevil"
REQUESTS = {
    "a stream": f"GET /streams/a{EVIL} HTTP/1.1\r\n",
    "a parameter that a link repeats": f"GET /streams/a?mode=poll&wait=0&x={EVIL} HTTP/1.1\r\n",
    "a place to go on from": f"GET /streams/a?mode=poll&wait=0&after={EVIL} HTTP/1.1\r\n",
    "an address": f"GET /nowhere{EVIL} HTTP/1.1\r\n",
    "a method": "GET%0d%0aX-Evil:yes / HTTP/1.1\r\n",
    "a subscription": f"GET /subscriptions/a{EVIL} HTTP/1.1\r\n",
    "a history": f"GET /streams/a{EVIL}/ldes HTTP/1.1\r\n",
    "an ontology": f"PUT /ontologies/a{EVIL} HTTP/1.1\r\nContent-Type: text/turtle\r\nContent-Length: 16\r\n",
    "a template": f"PUT /templates/a{EVIL} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 16\r\n",
    "an origin": "GET /health HTTP/1.1\r\nOrigin: http://a\x0b\r\n",
    "a host": "GET /streams/a/ldes HTTP/1.1\r\nHost: a%0d%0aX-Evil:yes\r\n",
}
"""Without their ends."""


def whole(parts: EdgeParts) -> EdgeParts:
    """An edge at which everything is possible, from any page."""
    subscriptions = SubscriptionManager(parts.registry, parts.clock)
    insights = SubscriptionExplainer(subscriptions, parts.registry, parts.log, parts.clock)
    return replace(
        parts, routes=registry_routes(subscriptions, OntologyManager(parts.registry), insights), origins=("*",)
    )


@pytest.mark.parametrize("asked", REQUESTS.values(), ids=REQUESTS)
def test_no_header_is_made_of_what_a_client_says(asked: str) -> None:
    async def scene() -> None:
        async with house(change=whole) as home, wire(home) as attacker:
            host = "" if "Host:" in asked else "Host: x\r\n"
            text = b"<x:s> <x:p> 1 ." + b" "
            await attacker.send(f"{asked}{host}Connection: close\r\n\r\n".encode() + text * ("Length: 16" in asked))
            told = await attacker.rest()
            assert told.count(b"HTTP/1.") == 1, "one answer to one request"
            head = told.partition(b"\r\n\r\n")[0].lower()
            assert b"\nx-evil" not in head
            assert b"\r" not in head.replace(b"\r\n", b"")
            await alive(home)

    run(scene())


@pytest.mark.parametrize("name", ["Event-Id", "Source-Id", "Application-Id", "Idempotency-Key", "Timestamp"])
@pytest.mark.parametrize("value", ['x:a"b', "x:a\\nb", "x:a\u0085b", "x:a\u2028b", "x:a\x0cb"], ids=ascii)
def test_headers_of_events_hold_nothing_that_ends_a_line(name: str, value: str) -> None:
    async def scene() -> None:
        async with house() as home, wire(home) as attacker:
            sent = body(event(1))
            head = f"POST /streams/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/n-quads\r\n{name}: {value}\r\n"
            await attacker.send(head.encode() + b"Content-Length: %d\r\n\r\n" % len(sent) + sent)
            assert (await attacker.answer()).status == 400
            assert home.twin.log.head() == 0

    run(scene())


@pytest.mark.parametrize("id", ["x:a\nid: 0\n\nevent: closing", "x:a\rdata: evil", "x:a b", "x:a\u0085"], ids=ascii)
def test_no_message_is_made_of_the_id_of_an_event(id: str) -> None:
    """Ids of events are those of messages where a listener comes from another edge."""

    async def scene() -> None:
        async with house() as home:
            line = '{"body":"<x:s> <x:p> 1 .","event":' + ascii(id).replace("'", '"').replace("\\x85", "\\u0085") + "}"
            headers = {"Content-Type": "application/x-ndjson"}
            async with home.session.post(home.url + "/streams/a", data=line, headers=headers) as response:
                assert response.status == 400, await response.text()
            assert home.twin.log.head() == 0

    run(scene())


def test_no_record_of_a_log_is_made_of_what_a_client_says() -> None:
    said = "a\n2026-01-01 00:00:00 ERROR triplewire: everything is lost\r\x1b[2J\u2028"
    try:
        raise ValueError(said)
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("triplewire", logging.ERROR, "", 1, "%s failed", (said,), info)
    first, *others = TextFormatter().format(record).split("\n")
    assert "\\n2026-01-01" in first
    assert all(line.startswith("    ") for line in others)
    assert not {"\r", "\x1b", "\u2028"} & set(TextFormatter().format(record))
    assert "\n" not in JsonFormatter("edge").format(record)
