"""`bench registration`: subscriptions made over HTTP, in bulk and one by one, while the pipeline waits for events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

from triplewire.bench.broker import broker
from triplewire.bench.machine import description, reference_ms
from triplewire.client import AsyncClient

BASE = "http://bench.example/"
SHAPES = 1_000
_SENSORS = 1_000

Say = Callable[[str], None]
Wish = Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """How many in bulk, and how many one after the other."""

    subscriptions: int = 100_000
    singles: int = 300


def run(plan: Plan, say: Say) -> dict[str, Any]:
    """Seconds for each kind of bulk, and milliseconds for a single one."""
    before = reference_ms()
    say("starting a broker")
    with broker() as running:
        bulks, singles = asyncio.run(_made(running.settings.url, plan, say))
    machine = {**description(), "reference_ms": [round(before), round(reference_ms())]}
    return {"machine": machine, "subscriptions": plan.subscriptions, "bulk": bulks, "single_ms": _spread(singles)}


async def _made(url: str, plan: Plan, say: Say) -> tuple[dict[str, Any], list[float]]:
    async with AsyncClient(url) as client:
        bulks = {name: await _bulk(client, name, wishes, say) for name, wishes in kinds(plan.subscriptions).items()}
        say(f"{plan.singles} one by one")
        return bulks, [await _single(client, wish) for wish in _alone(plan.singles)]


def kinds(count: int) -> dict[str, Iterable[Wish]]:
    """What is registered in bulk, by name."""
    return {
        "one_shape": ({"sparql": sparql(number), "kind": "signal"} for number in range(count)),
        "thousand_shapes": ({"sparql": structured(number), "kind": "signal"} for number in range(count)),
        "filters": ({"filter": constraints(number), "kind": "signal"} for number in range(count)),
    }


def sparql(number: int) -> str:
    """A sensor and a threshold."""
    sensor, limit = number % _SENSORS, number // _SENSORS
    return f"SELECT * {{ ?o <{BASE}sensor> <{BASE}sensor/{sensor}> ; <{BASE}value> ?v FILTER(?v > {limit}) }}"


def structured(number: int) -> str:
    """One of a thousand structures, which differ in their predicates, with a constant of its own."""
    structure = number % SHAPES
    named = f"?o <{BASE}p/{structure}> <{BASE}thing/{number}>"
    return f"SELECT * {{ {named} ; <{BASE}q/{structure % 7}> ?v FILTER(?v > 3) }}"


def constraints(number: int) -> list[Wish]:
    """The same as `sparql` asks for, as a filter."""
    return [
        {"attribute": f"{BASE}sensor", "op": "=", "value": {"@id": f"{BASE}sensor/{number % _SENSORS}"}},
        {"attribute": f"{BASE}value", "op": ">", "value": number // _SENSORS},
    ]


def _alone(count: int) -> Iterator[Wish]:
    """Of known and of new shapes in turn."""
    for number in range(count):
        known = sparql(10_000_000 + number)
        fresh = f"SELECT * {{ ?o <{BASE}new/{number}> ?v . ?v <{BASE}of> <{BASE}thing/{number}> FILTER(?v != ?o) }}"
        yield {"sparql": fresh if number % 2 else known, "kind": "signal"}


async def _bulk(client: AsyncClient, name: str, wishes: Iterable[Wish], say: Say) -> dict[str, Any]:
    say(f"{name} in bulk")
    began = time.perf_counter()
    told = ["id" in line async for line in client.subscribe_bulk(wishes)]
    return {"seconds": round(time.perf_counter() - began, 2), "made": told.count(True), "refused": told.count(False)}


async def _single(client: AsyncClient, wish: Wish) -> float:
    began = time.perf_counter()
    await client.subscribe(wish["sparql"], kind=wish["kind"])
    return (time.perf_counter() - began) * 1_000


def _spread(milliseconds: list[float]) -> dict[str, float]:
    hundredths = quantiles(milliseconds, n=100)
    return {
        "median": round(median(milliseconds), 1),
        "p95": round(hundredths[94], 1),
        "p99": round(hundredths[98], 1),
        "max": round(max(milliseconds), 1),
    }
