"""`bench pipeline`: the whole path, from a publish over HTTP to the notification and the row in the lake."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvloop
from deltalake import DeltaTable

from triplewire.bench.broker import Broker, broker
from triplewire.bench.listening import Heard, listen
from triplewire.bench.machine import reference_ms
from triplewire.bench.report import percentile
from triplewire.bench.workload import Question, body, expected, questions
from triplewire.client import AsyncClient
from triplewire.config.status import HEARTBEAT_SECONDS
from triplewire.model import parse_position

STREAM = "bench"
BODY_EVENTS = 1_000
PUBLISHERS = 4
WARM_UP = 40_000
STEADY_RATE = 200
STEADY_SECONDS = 20
IDLE_SECONDS = 30.0
PATIENCE = 120.0
"""Seconds without a new notification after which what is missing counts as lost."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What to run. `soak` is a number of seconds at half the top rate; 0 leaves it out."""

    events: int = 50_000
    subscriptions: int = 1_000
    soak: float = 0.0


@dataclass
class Run:
    """One benchmark on its way: who listens, what was published, what was heard."""

    broker: Broker
    client: AsyncClient
    asked: list[Question]
    heard: Heard = field(default_factory=Heard)
    due: set[tuple[int, int]] = field(default_factory=set)
    published: int = 0

    def take(self, count: int) -> range:
        """The numbers of the next events."""
        numbers = range(self.published, self.published + count)
        self.published += count
        self.due |= expected(self.asked, numbers)
        return numbers

    async def publish(self, bodies: Iterable[bytes]) -> int:
        """Send all bodies over a few connections; the last position."""
        waiting = iter(bodies)
        ends = await asyncio.gather(*(self._publisher(waiting) for _ in range(PUBLISHERS)))
        return max(ends)

    async def settle(self, upto: int = 0) -> None:
        """Until everything due was heard and the lake holds everything up to a position, or patience is at its end."""
        last, since = self.heard.total, time.perf_counter()
        while len(self.heard.counts) < len(self.due) or await self._stored() < upto:
            await asyncio.sleep(0.02)
            if self.heard.total != last:
                last, since = self.heard.total, time.perf_counter()
            if time.perf_counter() - since > PATIENCE:
                break

    async def _publisher(self, waiting: Iterable[bytes]) -> int:
        end = 0
        for each in waiting:
            receipt = await self.client.publish(STREAM, each)
            end = max(end, parse_position(receipt["last"]))
        return end

    async def _stored(self) -> int:
        return parse_position((await self.client.health())["stored"] or "earliest")


def run(plan: Plan, say: Say) -> dict[str, Any]:
    """Everything that the benchmark measures, by name."""
    before = reference_ms()
    say("starting the broker")
    with broker() as running:
        report = uvloop.run(_measure(running, plan, say))
    return {**report, "reference_ms": [round(before), round(reference_ms())]}


async def _measure(running: Broker, plan: Plan, say: Say) -> dict[str, Any]:
    report: dict[str, Any] = {"events": plan.events, "subscriptions": plan.subscriptions}
    report["ready_s"] = round(running.ready_seconds, 1)
    say("idle")
    report["idle"] = await _idle(running)
    async with AsyncClient(running.settings.url) as client:
        run = Run(running, client, questions(plan.subscriptions))
        say(f"making {plan.subscriptions} subscriptions")
        ids = await _subscribe(run, report)
        paths = [f"/subscriptions/{id}/notifications" for id in ids]
        ears = await listen(running.settings.host, running.settings.port, paths, run.heard)
        say("warming up")
        await run.settle(await run.publish(_bodies(run.take(WARM_UP))))
        say(f"publishing {plan.events} events in bodies of {BODY_EVENTS}")
        report.update(await _throughput(run, plan.events))
        say(f"{STEADY_RATE} events a second, one by one, for {STEADY_SECONDS} s")
        report.update(await _latency(run))
        if plan.soak:
            rate = report["events_per_s"] / 2
            say(f"{rate:.0f} events a second for {plan.soak:.0f} s")
            report["soak"] = await _soak(run, rate, plan.soak, say)
        report.update(_verdict(run))
        for ear in ears:
            ear.close()
    return report


async def _idle(running: Broker) -> dict[str, Any]:
    await asyncio.sleep(3)
    before = running.edge().cpu + running.pipeline().cpu
    await asyncio.sleep(IDLE_SECONDS)
    edge, pipeline = running.edge(), running.pipeline()
    return {
        "cpu_percent": round((edge.cpu + pipeline.cpu - before) / IDLE_SECONDS * 100, 1),
        "memory_mb": round((edge.memory + pipeline.memory) / 1e6),
    }


async def _subscribe(run: Run, report: dict[str, Any]) -> list[str]:
    began = time.perf_counter()
    wishes = [{"sparql": each.sparql, "kind": each.kind.value, "stream": STREAM} for each in run.asked]
    made = []
    for first in range(0, len(wishes), 250):
        made += await run.client.subscribe_all(wishes[first : first + 250])
    report["subscribe_s"] = round(time.perf_counter() - began, 2)
    return [each["id"] for each in made]


async def _throughput(run: Run, events: int) -> dict[str, Any]:
    bodies = _bodies(run.take(events))
    before = await _stages(run)
    began = time.perf_counter()
    upto = await run.publish(bodies)
    accepted = time.perf_counter() - began
    await run.settle(upto)
    took = time.perf_counter() - began
    await asyncio.sleep(HEARTBEAT_SECONDS + 1)  # for the heartbeat that tells of the last batch
    after = await _stages(run)
    return {
        "events_per_s": round(events / took),
        "accepted_per_s": round(events / accepted),
        "breakdown_us": {name: round((after[name] - before[name]) / events * 1e6, 1) for name in after},
    }


async def _stages(run: Run) -> dict[str, float]:
    """CPU seconds so far, by what they were spent on. What edge, workers and Spark do beside the named is theirs."""
    edge = await asyncio.to_thread(run.broker.edge_seconds)
    worker = run.broker.up.heartbeat().detail["cpu"]
    jvm, pipeline = run.broker.jvm_seconds(), run.broker.pipeline().cpu
    return {
        "door": edge["door"],
        "log": edge["log"],
        "delivery": edge["all"] - edge["door"] - edge["log"],
        "engine": jvm,
        "source": pipeline - jvm - worker["kernel"] - worker["store"],
        "kernel": worker["kernel"],
        "store": worker["store"],
        "load_generator": time.process_time(),
    }


async def _latency(run: Run) -> dict[str, Any]:
    numbers = run.take(STEADY_RATE * STEADY_SECONDS)
    sent: dict[int, float] = {}
    began = time.perf_counter()
    tasks = []
    for index, number in enumerate(numbers):
        await asyncio.sleep(max(0.0, began + index / STEADY_RATE - time.perf_counter()))
        sent[number] = time.perf_counter()
        tasks.append(asyncio.create_task(run.client.publish(STREAM, body([number]))))
    receipts = await asyncio.gather(*tasks)
    await run.settle(max(parse_position(each["last"]) for each in receipts))
    delays = [(at - sent[event]) * 1_000 for (_, event), at in run.heard.times.items() if event in sent]
    return {"p50_ms": round(percentile(delays, 0.5)), "p99_ms": round(percentile(delays, 0.99)), "delays": len(delays)}


async def _soak(run: Run, rate: float, seconds: float, say: Say) -> dict[str, Any]:
    """Lag and memory at the start and at the end of a long run at a steady rate."""
    began = time.perf_counter()
    samples: list[tuple[int, int]] = []
    upto = 0
    for second in range(int(seconds)):
        upto = await run.publish(_bodies(run.take(int(rate))))
        if second % 10 == 9:
            memory = run.broker.edge().memory + run.broker.pipeline().memory
            samples.append(((await run.client.health())["lag"], memory))
            say(f"{second + 1} s: lag {samples[-1][0]}, {memory / 1e6:.0f} MB")
        await asyncio.sleep(max(0.0, began + second + 1 - time.perf_counter()))
    took = time.perf_counter() - began
    await run.settle(upto)
    return {"rate": round(seconds * rate / took), **_flatness(samples)}


def _flatness(samples: Sequence[tuple[int, int]]) -> dict[str, Any]:
    quarter = max(1, len(samples) // 4)
    parts = {"first": samples[:quarter], "last": samples[-quarter:]}
    return {
        name: {
            "lag": round(sum(lag for lag, _ in part) / len(part)),
            "memory_mb": round(sum(memory for _, memory in part) / len(part) / 1e6),
        }
        for name, part in parts.items()
        if part
    }


def _verdict(run: Run) -> dict[str, Any]:
    heard = run.heard.counts
    rows = DeltaTable(run.broker.settings.lake).get_add_actions(flatten=True)
    stored = sum(count for count in rows.column("num_records").to_pylist())
    return {
        "notifications": run.heard.total,
        "lost": len(run.due - heard.keys()),
        "unexpected": len(heard.keys() - run.due),
        "duplicated": run.heard.total - len(heard),
        "quads_missing": run.published * 5 - stored,
    }


def _bodies(numbers: range) -> list[bytes]:
    return [body(numbers[first : first + BODY_EVENTS]) for first in range(0, len(numbers), BODY_EVENTS)]
