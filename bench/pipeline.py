"""`bench pipeline`: the whole path, from a publish over HTTP to the notification and the row in the lake.

An event is a sensor's reading of five quads and follows from its number, so that the notifications that are due are
computed here by plain arithmetic, apart from the code that is measured.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import uvloop
from deltalake import DeltaTable

from bench.harness import SOSA, Machine, Report, Say, summarize
from bench.processes import Arrivals, Broker, last_position, listen, publish_bodies, publish_steadily, start_broker
from triplewire.client import AsyncClient
from triplewire.config.status import HEARTBEAT_SECONDS
from triplewire.model import Kind, parse_position
from triplewire.model.terms import RDF_TYPE, XSD

BASE = "http://city.example/"
PROPERTIES = ("no2", "noise", "speed", "occupancy")
SENSORS = 2_000

STREAM = "bench"
BODY_EVENTS = 1_000
PUBLISHERS = 4
BULK = 250
"""Subscriptions of one request."""
WARM_UP = 40_000
STEADY_RATE = 200
STEADY_SECONDS = 20
BUSY_RATE = 1_000
BUSY_SUBSCRIPTIONS = 10_000
"""Subscriptions of the second measurement of latency. Those beyond the first ones have no client."""
IDLE_SECONDS = 30.0
PATIENCE = 120.0
"""Seconds without a new notification after which those that are missing count as lost."""

_QUADS = "".join(
    f"<{BASE}o/{{n}}> {predicate} {obj} <{BASE}e/{{n}}> .\n"
    for predicate, obj in (
        (RDF_TYPE, f"<{SOSA}Observation>"),
        (f"<{SOSA}madeBySensor>", f"<{BASE}district/{{district}}/sensor/{{sensor}}>"),
        (f"<{SOSA}observedProperty>", f"<{BASE}property/{{property}}>"),
        (f"<{SOSA}hasSimpleResult>", f'"{{value}}"^^<{XSD}decimal>'),
        (f"<{SOSA}resultTime>", f'"2026-11-15T{{hour:02}}:{{minute:02}}:{{second:02}}Z"^^<{XSD}dateTime>'),
    )
)


def sensor_of(number: int) -> int:
    return number * 7_919 % SENSORS


def tenths_of(number: int) -> int:
    """Return ten times the value of a reading: 0 to 999."""
    return number * 2_654_435_761 // 7 % 1_000


def write_body(numbers: Iterable[int]) -> bytes:
    """Return the N-Quads of the events with these numbers."""
    return "".join(map(_write_reading, numbers)).encode()


def _write_bodies(numbers: range) -> list[bytes]:
    return [write_body(numbers[first : first + BODY_EVENTS]) for first in range(0, len(numbers), BODY_EVENTS)]


def _write_reading(n: int) -> str:
    sensor, tenths = sensor_of(n), tenths_of(n)
    return _QUADS.format(
        n=n,
        sensor=sensor,
        district=sensor % 20,
        property=PROPERTIES[sensor % len(PROPERTIES)],
        value=f"{tenths // 10}.{tenths % 10}",
        hour=n // 3_600 % 24,
        minute=n // 60 % 60,
        second=n % 60,
    )


@dataclass(frozen=True)
class SensorSubscription:
    """A subscription about one sensor; `wants` tells by its tenths which readings of that sensor are due."""

    sparql: str
    kind: Kind
    sensor: int
    wants: Callable[[int], bool]


_OF_SENSOR = "?o sosa:madeBySensor {sensor}"
_VALUE = _OF_SENSOR + " ; sosa:hasSimpleResult ?v"
SHAPES: Sequence[tuple[str, Kind, Callable[[int, int], bool]]] = (
    (_OF_SENSOR, Kind.SIGNAL, lambda tenths, limit: True),
    ("?o a sosa:Observation ; sosa:madeBySensor {sensor}", Kind.EVENT, lambda tenths, limit: True),
    (_VALUE + " FILTER(?v > {limit})", Kind.BINDINGS, lambda tenths, limit: tenths > limit),
    (_VALUE + " FILTER(?v <= {limit})", Kind.SIGNAL, lambda tenths, limit: tenths <= limit),
    (
        "?o sosa:hasSimpleResult ?v ; sosa:madeBySensor {sensor} FILTER(?v >= {half} && ?v < {limit})",
        Kind.BINDINGS,
        lambda tenths, limit: limit / 20 <= tenths / 10 < limit / 10,
    ),
    (_VALUE + " FILTER(?v * 2 > {limit} + 1)", Kind.BINDINGS, lambda tenths, limit: tenths * 2 > limit + 10),
    ("GRAPH ?g {{ " + _VALUE + " }}", Kind.BINDINGS, lambda tenths, limit: True),
    (
        "?o sosa:observedProperty {property} ; sosa:madeBySensor {sensor} ; sosa:resultTime ?t",
        Kind.BINDINGS,
        lambda tenths, limit: True,
    ),
    (_OF_SENSOR + " ; sosa:observedProperty {other}", Kind.EVENT, lambda tenths, limit: False),
    (
        '?o sosa:observedProperty {property} ; sosa:madeBySensor ?s FILTER(STRENDS(STR(?s), "/sensor/{number}"))',
        Kind.SIGNAL,
        lambda tenths, limit: True,
    ),
)
"""The pattern of each shape, the kind of its notifications, and the readings that are due, by tenths and threshold."""


def make_subscriptions(count: int) -> list[SensorSubscription]:
    """Return so many, of ten shapes in equal parts; about `count / SENSORS` are about any one sensor."""
    return [_make_subscription(number, number * 13 % SENSORS, number * 37 % 1_000) for number in range(count)]


def _make_subscription(number: int, sensor: int, tenths: int) -> SensorSubscription:
    pattern, kind, wants = SHAPES[number % len(SHAPES)]
    measured, other = (f"<{BASE}property/{PROPERTIES[(sensor + each) % len(PROPERTIES)]}>" for each in (0, 1))
    where = pattern.format(
        sensor=f"<{BASE}district/{sensor % 20}/sensor/{sensor}>",
        limit=tenths / 10,
        half=tenths / 20,
        property=measured,
        other=other,
        number=sensor,
    )
    sparql = f"PREFIX sosa: <{SOSA}> SELECT * {{ {where} }}"
    return SensorSubscription(sparql, kind, sensor, lambda found: wants(found, tenths))


def find_due(subscriptions: Sequence[SensorSubscription], numbers: Iterable[int]) -> set[tuple[int, int]]:
    """Return the pairs (number of the subscription, number of the event) that must be delivered, once each."""
    by_sensor: defaultdict[int, list[int]] = defaultdict(list)
    for index, each in enumerate(subscriptions):
        by_sensor[each.sensor].append(index)
    return {
        (index, number)
        for number in numbers
        for index in by_sensor[sensor_of(number)]
        if subscriptions[index].wants(tenths_of(number))
    }


@dataclass
class PipelineRun:
    """A run: the broker, the events that were published, and the notifications that are due and that arrived."""

    broker: Broker
    client: AsyncClient
    subscriptions: list[SensorSubscription]
    say: Say
    arrivals: Arrivals = field(default_factory=Arrivals)
    due: set[tuple[int, int]] = field(default_factory=set)
    published: int = 0

    def take(self, count: int) -> range:
        """Return the numbers of the next events."""
        numbers = range(self.published, self.published + count)
        self.published += count
        self.due |= find_due(self.subscriptions, numbers)
        return numbers

    async def publish(self, numbers: range) -> int:
        """Publish events in large bodies; return the last position."""
        return last_position(await publish_bodies(self.client, STREAM, _write_bodies(numbers), PUBLISHERS))

    async def settle(self, position: int) -> None:
        """Wait until all due notifications arrived and the lake holds all up to a position, or patience ends."""
        last, since = self.arrivals.total, time.perf_counter()
        while len(self.arrivals.counts) < len(self.due) or await self._stored() < position:
            await asyncio.sleep(0.02)
            if self.arrivals.total != last:
                last, since = self.arrivals.total, time.perf_counter()
            if time.perf_counter() - since > PATIENCE:
                break

    async def _stored(self) -> int:
        return parse_position((await self.client.health())["stored"] or "earliest")

    async def subscribe(self, subscriptions: Sequence[SensorSubscription]) -> list[str]:
        """Return the paths of the notifications."""
        wanted = [{"sparql": each.sparql, "kind": each.kind.value, "stream": STREAM} for each in subscriptions]
        made = []
        for first in range(0, len(wanted), BULK):
            made += await self.client.subscribe_all(wanted[first : first + BULK])
        return [f"/subscriptions/{each['id']}/notifications" for each in made]

    async def measure_throughput(self, events: int) -> Report:
        bodies = _write_bodies(self.take(events))
        before, began = await self._measure_stages(), time.perf_counter()
        position = last_position(await publish_bodies(self.client, STREAM, bodies, PUBLISHERS))
        accepted = time.perf_counter() - began
        await self.settle(position)
        took = time.perf_counter() - began
        await asyncio.sleep(HEARTBEAT_SECONDS + 1)  # for the heartbeat that tells of the last batch
        after = await self._measure_stages()
        return {
            "events_per_s": round(events / took),
            "accepted_per_s": round(events / accepted),
            "breakdown_us": {name: round((after[name] - before[name]) / events * 1e6, 1) for name in after},
        }

    async def _measure_stages(self) -> dict[str, float]:
        """Return the CPU seconds so far, by stage. Time of edge and workers beside the named parts counts as delivery
        and source."""
        edge = await asyncio.to_thread(self.broker.read_edge_seconds)
        worker = self.broker.up.heartbeat().detail["cpu"]
        jvm, pipeline = self.broker.measure_java(), self.broker.measure_pipeline().cpu
        return {
            "door": edge["publish"],
            "log": edge["log"],
            "delivery": edge["all"] - edge["publish"] - edge["log"],
            "engine": jvm,
            "source": pipeline - jvm - worker["kernel"] - worker["store"],
            "kernel": worker["kernel"],
            "store": worker["store"],
            "load_generator": time.process_time(),
        }

    async def measure_latency(self, rate: int = STEADY_RATE) -> Report:
        bodies = ((number, write_body([number])) for number in self.take(rate * STEADY_SECONDS))
        sent, position = await publish_steadily(self.client, STREAM, bodies, rate)
        await self.settle(position)
        delays = self.arrivals.delays(sent)
        return {**summarize(delays, {"p50_ms": 0.5, "p99_ms": 0.99}, 1), "delays": len(delays)}

    async def soak(self, rate: float, seconds: float) -> Report:
        """Return lag and memory in the first and in the last quarter of a long run at a steady rate."""
        began, samples, position = time.perf_counter(), list[tuple[int, int]](), 0
        for second in range(int(seconds)):
            position = await self.publish(self.take(int(rate)))
            if second % 10 == 9:
                memory = self.broker.measure_edges().memory + self.broker.measure_pipeline().memory
                samples.append(((await self.client.health())["lag"], memory))
                self.say(f"{second + 1} s: lag {samples[-1][0]}, {memory / 1e6:.0f} MB")
            await asyncio.sleep(max(0.0, began + second + 1 - time.perf_counter()))
        took = time.perf_counter() - began
        await self.settle(position)
        quarter = max(1, len(samples) // 4)
        parts = {"first": samples[:quarter], "last": samples[-quarter:]}
        flat = {
            name: {
                "lag": round(sum(lag for lag, _ in part) / len(part)),
                "memory_mb": round(sum(memory for _, memory in part) / len(part) / 1e6),
            }
            for name, part in parts.items()
            if part
        }
        return {"rate": round(seconds * rate / took), **flat}

    def verify(self) -> Report:
        found = self.arrivals.counts
        files = DeltaTable(self.broker.settings.lake).get_add_actions(flatten=True)
        return {
            "notifications": self.arrivals.total,
            "lost": len(self.due - found.keys()),
            "unexpected": len(found.keys() - self.due),
            "duplicated": self.arrivals.total - len(found),
            "quads_missing": self.published * 5 - sum(files.column("num_records").to_pylist()),
        }


@dataclass(frozen=True)
class PipelineWorkload:
    """The size of a run."""

    events: int
    subscriptions: int
    soak: float
    """Seconds at half the top rate; 0 leaves them out."""
    tasks: int
    """Tasks that match at the same time."""


def run(workload: PipelineWorkload, say: Say) -> Report:
    """Measure the whole path."""
    machine = Machine()
    say("starting the broker")
    with start_broker(match_tasks=workload.tasks) as broker:
        report = uvloop.run(_measure(broker, workload, say))
    return {**report, "reference_ms": machine.reference()}


async def _measure(broker: Broker, workload: PipelineWorkload, say: Say) -> Report:
    events, subscriptions, soak = workload.events, workload.subscriptions, workload.soak
    report: Report = {
        "events": events,
        "subscriptions": subscriptions,
        "tasks": workload.tasks,
        "ready_s": round(broker.ready_seconds, 1),
    }
    say("idle")
    report["idle"] = await _measure_idle(broker)
    async with AsyncClient(broker.settings.url) as client:
        run = PipelineRun(broker, client, make_subscriptions(subscriptions), say)
        say(f"making {subscriptions} subscriptions")
        began = time.perf_counter()
        paths = await run.subscribe(run.subscriptions)
        report["subscribe_s"] = round(time.perf_counter() - began, 2)
        async with listen(broker.address, paths, BASE) as run.arrivals:
            say("warming up")
            await run.settle(await run.publish(run.take(WARM_UP)))
            say(f"publishing {events} events in bodies of {BODY_EVENTS}")
            report |= await run.measure_throughput(events)
            say(f"{STEADY_RATE} events a second, one by one, for {STEADY_SECONDS} s")
            report |= await run.measure_latency()
            say(f"{BUSY_RATE} events a second, with {BUSY_SUBSCRIPTIONS} subscriptions")
            await run.subscribe(make_subscriptions(BUSY_SUBSCRIPTIONS)[subscriptions:])
            report["busy"] = {
                "rate": BUSY_RATE,
                "subscriptions": max(subscriptions, BUSY_SUBSCRIPTIONS),
                **await run.measure_latency(BUSY_RATE),
            }
            if soak:
                rate = report["events_per_s"] / 2
                say(f"{rate:.0f} events a second for {soak:.0f} s")
                report["soak"] = await run.soak(rate, soak)
            report |= run.verify()
    return report


async def _measure_idle(broker: Broker) -> Report:
    await asyncio.sleep(3)
    before = broker.measure_edges().cpu + broker.measure_pipeline().cpu
    await asyncio.sleep(IDLE_SECONDS)
    edges, pipeline = broker.measure_edges(), broker.measure_pipeline()
    return {
        "cpu_percent": round((edges.cpu + pipeline.cpu - before) / IDLE_SECONDS * 100, 1),
        "memory_mb": round((edges.memory + pipeline.memory) / 1e6),
    }
