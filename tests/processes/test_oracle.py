"""What comes out of the whole path is what an independent engine computes for each event and subscription."""

from __future__ import annotations

from random import Random

import pytest

from tests import generated, oracle
from tests.processes.hearing import hear_all, until_stored
from triplewire.client import AsyncClient
from triplewire.model import Kind
from triplewire.rdf import N_QUADS, decode
from triplewire.service.supervisor import Supervisor

pytestmark = pytest.mark.processes

EVENTS, SUBSCRIPTIONS, SEED = 1_000, 50, 20_261_115


async def test_notifications_equal_the_oracle(broker: Supervisor) -> None:
    random = Random(SEED)
    events = [generated.event(random, number) for number in range(EVENTS)]
    asked = [(generated.sparql(random), list(Kind)[number % 3]) for number in range(SUBSCRIPTIONS)]
    async with AsyncClient(broker.settings.url) as client:
        made = [await client.subscribe(text, kind=kind, stream="oracle") for text, kind in asked]
        for first in range(0, EVENTS, 40):
            await client.publish("oracle", events[first : first + 40])
        heard = await hear_all(broker.settings.url, [each["id"] for each in made])
    for (text, kind), notifications in zip(asked, heard, strict=True):
        told = [each["event"] for each in notifications]
        wanted = {event.id: found for event in events if (found := oracle.solutions([event], text))}
        assert told == list(wanted), text
        for notification in notifications:
            assert notification["kind"] == kind
            if kind is Kind.BINDINGS:
                assert oracle.bag(notification["results"]) == wanted[notification["event"]], text
            elif kind is Kind.EVENT:
                (back,) = decode(notification["body"].encode(), N_QUADS)
                assert back.text == next(event.text for event in events if event.id == back.id)


async def test_history_equals_the_oracle(broker: Supervisor) -> None:
    random = Random(SEED + 1)
    events = [generated.event(random, 100_000 + number) for number in range(200)]
    async with AsyncClient(broker.settings.url) as client:
        receipt = await client.publish("history", events)
        await until_stored(client, receipt["last"])
        for _ in range(40):
            text = (
                generated.sparql(random).replace("{", "{ GRAPH ?e {", 1)[:-1]
                + '} ?e <https://triplewire.dev/ns#stream> "history" }'
            )
            if "GRAPH ?g" in text:
                continue
            plain = text.replace(' ?e <https://triplewire.dev/ns#stream> "history" }', " }")
            assert oracle.bag(await client.query(text)) == oracle.solutions(events, plain), text
