"""Happens-before: whoever subscribes and then publishes is told, every time."""

from __future__ import annotations

import pytest

from tests.processes.hearing import hear_all
from triplewire.client import AsyncClient
from triplewire.compose.up import Up
from triplewire.testing import event
from triplewire.testing.events import EXAMPLE

pytestmark = pytest.mark.processes

TIMES = 1_000


async def test_a_subscription_sees_the_next_event(broker: Up) -> None:
    ids = []
    async with AsyncClient(broker.settings.url) as client:
        for number in range(TIMES):
            subject = f"<{EXAMPLE}observation/{number}>"
            made = await client.subscribe(f"SELECT * {{ {subject} ?p ?o }}", stream="happens-before")
            await client.publish("happens-before", [event(number)])
            ids.append(made["id"])
        heard = await hear_all(broker.settings.url, ids)
    assert [[each["event"] for each in found] for found in heard] == [[event(number).id] for number in range(TIMES)]
