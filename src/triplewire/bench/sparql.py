"""`bench sparql`: ten queries over history, beside pyoxigraph on disk with the same data in the same run."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import orjson
import uvloop

from triplewire.bench.broker import broker
from triplewire.bench.machine import description, reference_ms
from triplewire.bench.sparql_compile import compile_ms
from triplewire.bench.sparql_data import City
from triplewire.bench.sparql_oxigraph import Oxigraph
from triplewire.bench.sparql_queries import QUESTIONS, Question
from triplewire.client import AsyncClient
from triplewire.model import parse_position
from triplewire.model.errors import TriplewireError

STREAM = "bench"
BODY_EVENTS = 1_000
PUBLISHERS = 4
SPARK_RUNS = 3
LOOK_SECONDS = 0.2

Say = Callable[[str], None]


class Disagreement(TriplewireError):
    """Two engines that do not give the same number of rows: one of them is wrong, and its time means nothing."""


WARM_LOOKS = 600
"""How often to look whether queries are ready before they are measured as they are: a lake that is too large to be
copied never is."""


@dataclass(frozen=True)
class Plan:
    """What to run: how many quads, how often each query is timed after it was asked once, and whether on Spark."""

    quads: int = 1_000_000
    runs: int = 7
    spark: bool = True


@dataclass(frozen=True)
class Bench:
    """One benchmark on its way."""

    city: City
    plan: Plan
    client: AsyncClient
    rival: Oxigraph
    say: Say

    async def load(self) -> float:
        """Publish everything and wait until it is stored. The seconds that took."""
        began = time.perf_counter()
        waiting = self._told(self.city.bodies(BODY_EVENTS))
        ends = await asyncio.gather(*(self._publisher(waiting) for _ in range(PUBLISHERS)))
        self.say("waiting until everything is stored")
        while parse_position((await self.client.health())["stored"] or "earliest") < max(ends):
            await asyncio.sleep(LOOK_SECONDS)
        return time.perf_counter() - began

    async def warm(self) -> None:
        """Wait until the process that is asked has made everything ready, as it does when it is left alone."""
        self.say("waiting until queries are ready")
        for _ in range(WARM_LOOKS):
            how = await self.client.query("ASK {}", explain="json", engine="duckdb")
            if how["files"]["copied"]:
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def measure(self, question: Question) -> dict[str, Any]:
        """Medians in milliseconds, after a run that is not counted. Raises Disagreement."""
        turns = range(1 + self.plan.runs)
        theirs = [self._theirs(question, turn) for turn in turns]
        counts = [count for _, count in theirs]
        duckdb = await self._ours(question, counts, "duckdb", len(turns))
        spark = await self._ours(question, counts, "spark", 1 + SPARK_RUNS) if self.plan.spark else None
        oxigraph = _median_ms([seconds for seconds, _ in theirs])
        return {
            "rows": round(median(counts)),
            "duckdb_ms": duckdb,
            "spark_ms": spark,
            "oxigraph_ms": oxigraph,
            "ratio": round(oxigraph / duckdb, 2),
        }

    def _theirs(self, question: Question, turn: int) -> tuple[float, int]:
        began = time.perf_counter()
        body = self.rival.answer(question.text(self.city, turn))
        return time.perf_counter() - began, rows(question, body)

    async def _ours(self, question: Question, counts: list[int], engine: str, turns: int) -> float:
        taken = []
        for turn in range(turns):
            text = question.text(self.city, turn % len(counts))
            began = time.perf_counter()
            async with self.client.answer(text, format=_format(question), engine=engine) as answer:
                body = b"".join([piece async for piece in answer])
            taken.append(time.perf_counter() - began)
            agree(question, engine, rows(question, body), counts[turn % len(counts)])
        return _median_ms(taken)

    async def _publisher(self, waiting: Iterator[bytes]) -> int:
        end = 0
        for each in waiting:
            receipt = await self.client.publish(STREAM, each)
            end = max(end, parse_position(receipt["last"]))
        return end

    def _told(self, bodies: Iterator[bytes]) -> Iterator[bytes]:
        total = self.city.events // BODY_EVENTS + 1
        step = max(1, total // 10)
        for number, body in enumerate(bodies):
            if number % step == 0:
                self.say(f"publishing, {100 * number // (total + 1)} %")
            yield body


def run(plan: Plan, say: Say) -> dict[str, Any]:
    """Everything that the benchmark measures, by name."""
    city, before = City(plan.quads), reference_ms()
    compiled = compile_ms(city)
    with tempfile.TemporaryDirectory(prefix="triplewire-rival-") as directory:
        rival = Oxigraph(Path(directory))
        say(f"loading {city.quads:,} quads into pyoxigraph")
        loaded = rival.load(city.bodies(BODY_EVENTS))
        say("starting the broker")
        with broker() as running:
            report = uvloop.run(measure(running.settings.url, plan, rival, say))
    report["load_s"]["oxigraph"] = round(loaded, 1)
    machine = {**description(), "oxigraph": Oxigraph.version, "reference_ms": [round(before), round(reference_ms())]}
    return {"machine": machine, **report, "compile_ms": _compiled(compiled)}


async def measure(url: str, plan: Plan, rival: Oxigraph, say: Say) -> dict[str, Any]:
    """Of a broker that holds nothing yet, beside a rival that holds everything."""
    city = City(plan.quads)
    async with AsyncClient(url) as client:
        bench = Bench(city, plan, client, rival, say)
        loaded = await bench.load()
        await bench.warm()
        found = {}
        for number, question in enumerate(QUESTIONS, 1):
            say(f"query {number} of {len(QUESTIONS)}: {question.title}")
            found[question.name] = await bench.measure(question)
    return {
        "quads": city.quads,
        "events": city.events,
        "runs": plan.runs,
        "load_s": {"triplewire": round(loaded, 1)},
        "queries": found,
    }


def rows(question: Question, body: bytes) -> int:
    """Of an answer as it was sent: solutions, or triples."""
    if question.of_graph:
        return len(set(body.splitlines()))
    return len(orjson.loads(body)["results"]["bindings"])


def agree(question: Question, engine: str, found: int, expected: int) -> None:
    if found != expected:
        raise Disagreement(f"{question.title}: {engine} gives {found} rows, pyoxigraph {expected}")


def _format(question: Question) -> str:
    return "ntriples" if question.of_graph else "json"


def _median_ms(seconds: list[float]) -> float:
    """Of all but the first."""
    return round(median(seconds[1:]) * 1_000, 2)


def _compiled(by_query: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Medians over the queries, the slowest of those seen before, and each."""
    again = [each["again"] for each in by_query.values()]
    return {
        "first": median(each["first"] for each in by_query.values()),
        "again": median(again),
        "slowest_again": max(again),
        "queries": by_query,
    }
