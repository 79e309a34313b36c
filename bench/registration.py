"""`bench registration`: subscriptions made over HTTP, in bulk and one by one, while the pipeline waits for events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bench.harness import BASE, Machine, Report, Say, summarize
from bench.processes import start_broker
from triplewire.client import AsyncClient

SHAPES = 1_000
_SENSORS = 1_000

Wanted = Mapping[str, Any]
"""A subscription as it is posted."""


def run(subscriptions: int, singles: int, say: Say) -> Report:
    """Measure seconds for each kind of bulk, and milliseconds for a single subscription."""
    machine = Machine()
    say("starting a broker")
    with start_broker() as broker:
        bulks, taken = asyncio.run(_measure(broker.settings.url, subscriptions, singles, say))
    single = summarize(taken, {"median": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}, 1)
    return {"machine": machine.describe(), "subscriptions": subscriptions, "bulk": bulks, "single_ms": single}


async def _measure(url: str, count: int, singles: int, say: Say) -> tuple[Report, list[float]]:
    bulks, taken = Report(), list[float]()
    async with AsyncClient(url) as client:
        for name, wanted in make_bulks(count).items():
            say(f"{name} in bulk")
            began = time.perf_counter()
            made = ["id" in line async for line in client.subscribe_bulk(wanted)]
            seconds = round(time.perf_counter() - began, 2)
            bulks[name] = {"seconds": seconds, "made": made.count(True), "refused": made.count(False)}
        say(f"{singles} one by one")
        for text in _write_singles(singles):
            began = time.perf_counter()
            await client.subscribe(text, kind="signal")
            taken.append((time.perf_counter() - began) * 1_000)
    return bulks, taken


def make_bulks(count: int) -> dict[str, Iterable[Wanted]]:
    """Return the subscriptions that are registered in bulk, by kind."""
    return {
        "one_shape": ({"sparql": write_threshold(number), "kind": "signal"} for number in range(count)),
        "thousand_shapes": ({"sparql": write_structure(number), "kind": "signal"} for number in range(count)),
        "filters": ({"filter": make_filter(number), "kind": "signal"} for number in range(count)),
    }


def write_threshold(number: int) -> str:
    """Return a query for one sensor and values above a threshold."""
    sensor, limit = number % _SENSORS, number // _SENSORS
    return f"SELECT * {{ ?o <{BASE}sensor> <{BASE}sensor/{sensor}> ; <{BASE}value> ?v FILTER(?v > {limit}) }}"


def write_structure(number: int) -> str:
    """Return a query of one of a thousand structures, which differ in their predicates, with a constant of its own."""
    structure = number % SHAPES
    named = f"?o <{BASE}p/{structure}> <{BASE}thing/{number}>"
    return f"SELECT * {{ {named} ; <{BASE}q/{structure % 7}> ?v FILTER(?v > 3) }}"


def make_filter(number: int) -> list[Wanted]:
    """Return the constraints that mean the same as `write_threshold`."""
    return [
        {"attribute": f"{BASE}sensor", "op": "=", "value": {"@id": f"{BASE}sensor/{number % _SENSORS}"}},
        {"attribute": f"{BASE}value", "op": ">", "value": number // _SENSORS},
    ]


def _write_singles(count: int) -> Iterator[str]:
    """Yield queries of known and of new shapes in turn."""
    for number in range(count):
        fresh = f"SELECT * {{ ?o <{BASE}new/{number}> ?v . ?v <{BASE}of> <{BASE}thing/{number}> FILTER(?v != ?o) }}"
        yield fresh if number % 2 else write_threshold(10_000_000 + number)
