"""Happens-before: whoever subscribes and then publishes is told, every time."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import aiohttp
import pytest

from tests.config.collectors import Collector
from tests.processes.hearing import hear_all
from triplewire.client import AsyncClient
from triplewire.service.supervisor import Supervisor
from triplewire.testing import event
from triplewire.testing.samples import EXAMPLE

pytestmark = pytest.mark.processes

TIMES = 1_000


async def test_a_subscription_sees_the_next_event(broker: Supervisor) -> None:
    ids = []
    async with AsyncClient(broker.settings.url) as client:
        for number in range(TIMES):
            subject = f"<{EXAMPLE}observation/{number}>"
            made = await client.subscribe(f"SELECT * {{ {subject} ?p ?o }}", stream="happens-before")
            await client.publish("happens-before", [event(number)])
            ids.append(made["id"])
        heard = await hear_all(broker.settings.url, ids)
    assert [[each["event"] for each in found] for found in heard] == [[event(number).id] for number in range(TIMES)]


def test_a_trace_leads_from_the_publisher_through_spark_to_the_listener(
    broker: Supervisor, collector: Collector
) -> None:
    """Door, log, batch and delivery, in two processes, are spans of the publisher's own trace."""
    trace, span = uuid4().hex, uuid4().hex[:16]

    async def scene() -> None:
        async with AsyncClient(broker.settings.url) as client, aiohttp.ClientSession(broker.settings.url) as session:
            made = await client.subscribe("ASK { ?s <urn:traced> ?o }")
            headers = {"Content-Type": "text/turtle", "traceparent": f"00-{trace}-{span}-01"}
            async with session.get(f"/subscriptions/{made['id']}/notifications") as listening:
                async with session.post(
                    "/streams/traced", data="<urn:s> <urn:traced> 1 .", headers=headers
                ) as response:
                    assert response.status == 201
                while b"event: notification" not in await listening.content.readline():
                    pass
            await client.unsubscribe(made["id"])

    asyncio.run(scene())
    spans = collector.trace(trace, {"publish", "log commit", "match", "match batch", "deliver"})
    publish = spans["publish"]
    assert publish.span.parent_span_id.hex() == span
    assert {spans[name].span.parent_span_id.hex() for name in ("log commit", "match", "deliver")} == {publish.id}
    assert {spans[name].service for name in ("match", "match batch")} == {"triplewire-pipeline"}
    assert [each.span_id.hex() for each in spans["match"].span.links] == [spans["match batch"].id]
    # Matching may be through before the edge has noted the end of its commit.
    began = [spans[name].span.start_time_unix_nano for name in ("log commit", "match", "deliver")]
    assert began == sorted(began)
