"""Hearing everything that a subscription was told, and knowing that it was everything; waiting for the lake."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import aiohttp
import orjson

from triplewire.client import AsyncClient
from triplewire.client.feeds import SseParser

LOOK_SECONDS = 0.05
"""Between two looks at what is waited for: without it, who waits takes the processor from what it waits for."""


async def hear_all(url: str, ids: Sequence[str]) -> list[list[dict[str, Any]]]:
    """The notifications of each subscription up to its end, which is asked for here once somebody listens: the last
    message comes after everything that happened before it."""
    gate = asyncio.Semaphore(50)
    async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(limit=0)) as session:
        return await asyncio.gather(*(_hear(session, gate, each) for each in ids))


async def _hear(session: aiohttp.ClientSession, gate: asyncio.Semaphore, id: str) -> list[dict[str, Any]]:
    async with gate, session.get(f"/subscriptions/{id}/notifications") as response:
        response.raise_for_status()
        async with session.delete(f"/subscriptions/{id}") as ended:
            ended.raise_for_status()
        found: list[dict[str, Any]] = []
        parser = SseParser()
        async for data in response.content.iter_any():
            for message in parser.feed(data):
                if message.event == "end":
                    return found
                assert message.event in ("position", "notification"), message
                if message.event == "notification":
                    found.append(orjson.loads(message.data))
        raise AssertionError(f"{id} was closed without an end")


async def until_stored(client: AsyncClient, position: str) -> None:
    """Until everything up to a position is matched and stored."""
    while True:
        health = await client.health()
        if min(health["matched"], health["stored"] or "") >= position:
            return
        await asyncio.sleep(LOOK_SECONDS)
