"""Edges for relays to carry between, and what is in their streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

from tests.http.harness import House, data
from triplewire.model.clock import ManualClock
from triplewire.network.declaration import parse_declaration
from triplewire.network.relay import Relay
from triplewire.network.route import Sleep


async def at_once(seconds: float) -> None:
    """A pause that takes no time, and lets others go on."""
    await asyncio.sleep(0)


@asynccontextmanager
async def relayed(
    text: str, folder: Path, to: House, name: str = "relay", beat: Sleep = asyncio.sleep
) -> AsyncIterator[Relay]:
    """A relay at work in this process; it is stopped at the end."""
    declaration = parse_declaration(text, folder / f"{name}.toml", to.url)
    relay, stop = Relay(declaration, ManualClock(), sleep=at_once, announce_sleep=beat), asyncio.Event()
    task = asyncio.create_task(relay.run(stop))
    try:
        yield relay
    finally:
        stop.set()
        await task


def mirror(of: House, stream: str = "test") -> str:
    return f'[[relay]]\nfrom = "{of.url}/streams/{stream}"\n'


def rows(at: House, stream: str = "test") -> list[dict[str, Any]]:
    """What the log of an edge has of a stream."""
    log = at.twin.log
    found: list[dict[str, Any]] = log.read(0, log.head(), 100_000).to_pylist()
    return [row for row in found if row["stream"] == stream]


def ids(at: House, stream: str = "test") -> list[str]:
    return [row["event"] for row in rows(at, stream)]


async def heard(at: House, count: int, stream: str = "test") -> list[str]:
    """The ids of the first events of a stream, once there are so many."""
    found: list[str] = []
    async with at.listen(f"/streams/{stream}?after=earliest") as ear:
        while len(found) < count:
            message = await ear.next()
            found += [data(message)["event"]] if message.event == "event" else []
    return found


def records(folder: Path, name: str = "relay", **fields: str) -> None:
    """Put a record in the place of the one that a relay has kept."""
    (path,) = (folder / f"{name}.positions").glob("*.json")
    kept = orjson.loads(path.read_bytes())
    path.write_bytes(orjson.dumps({**kept, "intended": None, **fields}))
