"""The oracle again, with events and subscriptions that are made up anew: what comes out equals what it computes."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import generated, oracle
from tests.processes.hearing import hear_all
from triplewire.client import AsyncClient
from triplewire.model import Kind
from triplewire.service.supervisor import Supervisor

pytestmark = pytest.mark.processes


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), kinds=st.lists(st.sampled_from(Kind), min_size=1, max_size=6))
def test_notifications_equal_the_oracle(broker: Supervisor, seed: int, kinds: list[Kind]) -> None:
    asyncio.run(check(broker.settings.url, Random(seed), kinds))


async def check(url: str, random: Random, kinds: list[Kind]) -> None:
    """Subscriptions are made between the events; each sees only what comes after it."""
    stream = f"property-{random.getrandbits(40):x}"
    events = [generated.event(random, random.getrandbits(40)) for _ in range(20)]
    asked: list[tuple[str, Kind, int, str]] = []
    async with AsyncClient(url) as client:
        for number, event in enumerate(events):
            while len(asked) < len(kinds) and random.random() < 0.4:
                text, kind = generated.sparql(random), kinds[len(asked)]
                made = await client.subscribe(text, kind=kind, stream=stream)
                asked.append((text, kind, number, made["id"]))
            await client.publish(stream, [event])
        heard = await hear_all(url, [id for *_, id in asked])
    for (text, kind, since, _), notifications in zip(asked, heard, strict=True):
        wanted = {each.id: found for each in events[since:] if (found := oracle.solutions([each], text))}
        assert [each["event"] for each in notifications] == list(wanted), text
        if kind is Kind.BINDINGS:
            assert [oracle.bag(each["results"]) for each in notifications] == list(wanted.values()), text
