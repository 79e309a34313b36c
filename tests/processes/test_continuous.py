"""Continuous queries through the real processes: what they are told is what an engine of others says, whatever dies."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import Process
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pyarrow as pa
import pytest

from bench.processes import free_port
from tests.continuous.oracle import Asked, Key, Published, Triple, expected
from tests.processes.hearing import LOOK_SECONDS
from tests.processes.test_crashes import edge, faulty_pipeline
from triplewire.client import AsyncClient
from triplewire.config import Settings
from triplewire.model import END
from triplewire.model.clock import SystemClock
from triplewire.model.positions import parse_position
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.outbox import OutboxLane, SqliteOutbox
from triplewire.storage.registry.sqlite import SqliteRegistry
from triplewire.storage.registry.subscriptions import QUERY, query_from_change

pytestmark = pytest.mark.processes

EX = "http://example.org/"
JOIN: tuple[Triple, ...] = (("?car", f"<{EX}seenBy>", "?one"), ("?one", f"<{EX}on>", "?road"))
PATH: tuple[Triple, ...] = (*JOIN, ("?road", f"<{EX}in>", f"<{EX}city>"))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path, port=free_port())


def quads(start: int, stop: int) -> list[Triple]:
    """Cars that are seen, sensors on roads, roads in the city: in turn, each kind of few values, so that they meet."""
    kinds = [
        lambda n: (f"<{EX}car{n % 7}>", f"<{EX}seenBy>", f"<{EX}sensor{n % 5}>"),
        lambda n: (f"<{EX}sensor{n % 5}>", f"<{EX}on>", f"<{EX}road{n % 3}>"),
        lambda n: (f"<{EX}road{n % 3}>", f"<{EX}in>", f"<{EX}{'city' if n % 2 else 'suburb'}>"),
    ]
    return [kinds[number % 3](number // 3) for number in range(start, stop)]


async def register(settings: Settings, text: str, **fields: object) -> dict[str, Any]:
    async with (
        aiohttp.ClientSession(settings.url) as session,
        session.post("/queries", json={"query": text, **fields}) as answer,
    ):
        made: dict[str, Any] = orjson.loads(await answer.read())
        assert answer.status == 201, made
        return made


async def publish(client: AsyncClient, found: list[Published], start: int, stop: int) -> int:
    """One event for each quad; they are added to what was found."""
    lines = quads(start, stop)
    body = "".join(f"{s} {p} {o} <urn:e:{number}> .\n" for number, (s, p, o) in enumerate(lines, start))
    receipt = await client.publish("city", body, content_type="application/n-quads")
    first, last = parse_position(receipt["first"]), parse_position(receipt["last"])
    assert last - first == stop - start - 1
    found += [Published(first + number, (quad,)) for number, quad in enumerate(lines)]
    return last


async def until_answered(settings: Settings, pipeline: Process, position: int) -> SqliteOutbox:
    outbox = SqliteOutbox(settings.outbox)
    while outbox.head(OutboxLane.CONTINUOUS) < position:
        assert pipeline.returncode is None
        await asyncio.sleep(LOOK_SECONDS)
    return outbox


def told(outbox: SqliteOutbox, settings: Settings, ids: list[str]) -> Counter[Key]:
    """As the edge tells it: of each group, what came after a query was registered."""
    registry, found = SqliteRegistry(settings.log, SystemClock()), Counter[Key]()
    rows = [row for chunk in outbox.read(0, 10_000, OutboxLane.CONTINUOUS) for row in chunk.matches.to_pylist()]
    for number, id in enumerate(ids):
        change = registry.get(QUERY, id)
        assert change is not None
        query = query_from_change(change)
        for row in rows:
            least = query.since if query.begins is None else query.begins - 1
            if row["group"] == query.group and row["value"] > least:
                bindings = tuple(sorted(zip(query.variables, row["terms"][1:], strict=True)))
                found[number, row["position"], bindings] += 1
    return found


def at_least(found: Counter[Key], since: int) -> Counter[Key]:
    """What the past answers is told where the query was registered."""
    told: Counter[Key] = Counter()
    for (query, position, bindings), count in found.items():
        told[query, max(position, since), bindings] += count
    return told


def answers(settings: Settings, stream: str) -> list[dict[str, Any]]:
    """The events of a stream, in order."""
    entries = SqliteLog(settings.log, SystemClock()).read(0, END, 100_000).to_pylist()
    return [each for each in entries if each["stream"] == stream]


async def erased_while_it_waited(settings: Settings, client: AsyncClient, pipeline: Process) -> None:
    """One event has what another waits for; it is erased before that comes. What others wait for stays."""
    query = f"SELECT ?who {{ ?who <{EX}carries> ?what . ?what <{EX}weighs> ?much }}"
    made = await register(settings, query)
    for who in ("secret", "known"):
        body = f"<{EX}{who}> <{EX}carries> <{EX}box> <urn:carried:{who}> ."
        receipt = await client.publish("city", body, content_type="application/n-quads")
    await until_answered(settings, pipeline, parse_position(receipt["last"]))
    assert keepers(settings, f"{EX}secret")
    asked = await client.erase("event", "urn:carried:secret")
    while {"step": "state", "state": "waiting", "at": None} in (await client.erasure(asked["id"]))["steps"]:
        assert pipeline.returncode is None
        await asyncio.sleep(LOOK_SECONDS)
    assert not keepers(settings, f"{EX}secret")
    assert keepers(settings, f"{EX}known")
    body = f'<{EX}box> <{EX}weighs> "7" <urn:weighed> .'
    receipt = await client.publish("city", body, content_type="application/n-quads")
    outbox = await until_answered(settings, pipeline, parse_position(receipt["last"]))
    found = told(outbox, settings, [made["id"]])
    assert [dict(bindings) for _, _, bindings in found.elements()] == [{"who": f"<{EX}known>"}]


def keepers(settings: Settings, term: str) -> list[Path]:
    """The ledgers that have a term."""
    found = []
    for path in settings.continuous_state.rglob("*.arrow"):
        with pa.OSFile(str(path)) as file:
            if term in str(pa.ipc.open_stream(file).read_all().to_pydict()):
                found.append(path)
    return found


@pytest.mark.timeout(600)
async def test_answers_are_the_same_bag_through_kills_at_the_worst_moments(settings: Settings) -> None:
    asked = [Asked(JOIN, told=("car", "road")), Asked(PATH, told=("car",)), Asked(JOIN, told=("road",), distinct=True)]
    published: list[Published] = []
    async with edge(settings) as (_, client):
        # What was published before counts for nobody who does not ask for it.
        before: list[Published] = []
        await publish(client, before, 0, 3)
        made = [await register(settings, each.sparql) for each in asked]
        construct = f"CONSTRUCT {{ ?car <{EX}near> ?road }} WHERE {{ {' . '.join(map(' '.join, JOIN))} }}"
        derived = await register(settings, construct, into="derived", streams=["city"])
        number = 3
        for point in ("before-continuous", "after-continuous"):
            await publish(client, published, number, number + 30)
            number += 30
            pipeline = await faulty_pipeline(settings, point)
            assert await pipeline.wait() == -signal.SIGKILL, point
        asking = [await register(settings, each.sparql, **{"from": "earliest"}) for each in asked[:2]]
        last = await publish(client, published, number, number + 30)
        pipeline = await faulty_pipeline(settings, "never")
        outbox = await until_answered(settings, pipeline, last)
        await erased_while_it_waited(settings, client, pipeline)
        pipeline.terminate()
        assert await pipeline.wait() == 0
    wanted = expected(asked, published)
    assert told(outbox, settings, [each["id"] for each in made]) == wanted
    for each, query in zip(asking, asked, strict=False):
        looked_back = told(outbox, settings, [each["id"]])
        since = min(position for _, position, _ in looked_back)
        assert looked_back == at_least(expected([query], [*before, *published]), since)
    found = answers(settings, "derived")
    assert [each["event"] for each in found] == sorted({each["event"] for each in found})
    assert all(derived["id"] in each["event"] for each in found)
    pairs = Counter(tuple(line.split("\t")[::2]) for each in found for line in each["text"].split("\n"))
    # What one event completes is one graph, in which a triple is there once.
    once = {(position, bindings) for query, position, bindings in wanted if query == 0}
    assert pairs == Counter((dict(bindings)["car"], dict(bindings)["road"]) for _, bindings in once)
