"""`bench continuous`: questions across events, by the real processes, over real sockets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import Any

import numpy as np
import pyoxigraph as ox
import uvloop

from bench.continuous_oracle import (
    DeliveredAnswers,
    PublishedTriples,
    check_rows,
    check_sample,
    expect_rows,
    find_groups,
)
from bench.continuous_workloads import (
    Codes,
    Conjunction,
    ContinuousWorkload,
    PathWorkload,
    StructureWorkload,
    write_bodies,
    write_pieces,
    write_sparql,
    write_triples,
)
from bench.harness import BASE, Aim, Machine, Report, Say, summarize
from bench.processes import Broker, listen, publish_bodies, publish_steadily, start_broker
from triplewire.client import AsyncClient
from triplewire.model import parse_position
from triplewire.model.errors import Unavailable, Unsupported
from triplewire.storage.outbox import OutboxLane, SqliteOutbox

BASE_QUERIES = 1_000
"""Questions beside which growth is measured."""
WARM_UP = 40_000
SPAN = 30_000
"""Positions that an answer of the workload `windowed` may lie across."""
STREAM = "triples"
BODY_TRIPLES = 2_000
PUBLISHERS = 2
PATIENCE = 240.0
"""Seconds without any progress after which there will be none."""
LISTENERS, RATE, SECONDS = 100, 50, 20
"""Connections while delays are measured, answers a second, and for how long."""
DELAY_PATIENCE = 60.0
ADDRESSES = 20_000
"""Nodes of the network in experiment E1 of the paper on CQC and CSBV."""
PAPER = {"csbv": 19_779, "cqc": 2_685}
"""Nodes that took part in query processing there: 100,000 questions, 600,000 triples."""

_RATES = {"paths": 10_000.0, "structures": 2_000.0, "windowed": 20_000.0}
_GROWTH = Aim("time for a triple, times that with 1,000 questions", ("growth", "times"), 2.0)
_SPREAD = Aim("share of buckets at work", ("loads", "buckets", "share_at_work"), 0.95, least=True)
_FLAT = Aim("memory in the last quarter, times that in the second", ("memory", "times"), 1.1)
_LATEST = Aim("until the latest window was reported after its end", ("late_ms", "max"), 2_000.0, " ms")
_ALL = Aim("windows without a report", ("missing",), 0.0)


def choose_aims(report: Mapping[str, Any]) -> list[Aim]:
    """Return the aims, on two cores, for a run of this kind and size."""
    workload = report["workload"]
    if workload == "sliding":
        return [_LATEST, _ALL]
    found: list[Aim] = []
    if report["strategy"] == "csbv":
        if workload == "structures" or report["queries"] >= 100_000:
            found.append(Aim("triples a second", ("triples_per_s",), _RATES[workload], least=True))
        found.append(_SPREAD)
    return found + [_GROWTH] * bool(report.get("growth")) + [_FLAT] * (workload == "windowed")


@dataclass(frozen=True)
class ContinuousKind:
    """How a workload is made, for how many questions and triples by default; and the span of answers."""

    make: Callable[[int, int], ContinuousWorkload]
    queries: int
    triples: int
    span: int | None = None


KINDS: Mapping[str, ContinuousKind] = {
    "paths": ContinuousKind(lambda queries, _: PathWorkload.of(queries), 100_000, 100_000),
    "structures": ContinuousKind(StructureWorkload.of, 1_000, 100_000),
    "windowed": ContinuousKind(lambda queries, _: PathWorkload.of(queries), 100_000, 500_000, SPAN),
}


@dataclass(frozen=True)
class ContinuousOptions:
    """`together` is the number of triples in an event; `growth` also measures few questions with as many answers."""

    workload: str
    queries: int
    triples: int
    strategy: str
    together: int
    growth: bool

    @classmethod
    def of(cls, workload: str, queries: int | None, triples: int | None, **rest: Any) -> ContinuousOptions:  # noqa: ANN401
        """Fill in the numbers of the workload where none are given. Raises Unsupported for an unknown workload."""
        if workload not in KINDS:
            raise Unsupported(f"the workload `{workload}`", hint=f"there are {', '.join(KINDS)}")
        return cls(workload, queries or KINDS[workload].queries, triples or KINDS[workload].triples, **rest)


@dataclass
class Session:
    """A broker with its questions. Every event has a number of its own."""

    broker: Broker
    client: AsyncClient
    workload: ContinuousWorkload
    together: int
    ids: list[str] = field(default_factory=list)
    """Ids of the questions, in order."""
    published: int = 0

    def __post_init__(self) -> None:
        self.outbox = SqliteOutbox(self.broker.settings.outbox)

    async def register(self, **options: int) -> tuple[float, float]:
        """Register all questions in bulk. Return the seconds until they were made, and until the pipeline knows all."""
        began, last = time.perf_counter(), 0
        wanted = ({"query": write_sparql(self.workload, each), **options} for each in self.workload.questions)
        async for made in self.client.register_bulk(wanted):
            if "id" not in made:
                raise Unavailable(f"a question was refused: {made}")
            self.ids.append(made["id"])
            last = max(last, parse_position(made["position"]))
        taken = time.perf_counter() - began
        await self.wait_passed(last)
        return taken, time.perf_counter() - began

    async def publish(self, texts: Sequence[str]) -> tuple[Codes, float]:
        """Publish as fast as triples are taken, in any order of bodies. Return the position of each triple, and the
        seconds until all was acknowledged."""
        bodies = write_bodies(texts, self.published, BODY_TRIPLES, self.together)
        self.published += -(-len(texts) // self.together)
        began, events = time.perf_counter(), []
        receipts = await publish_bodies(self.client, STREAM, bodies, PUBLISHERS)
        seconds = time.perf_counter() - began
        for receipt in receipts:
            first, last = parse_position(receipt["first"]), parse_position(receipt["last"])
            if last - first + 1 != receipt["events"]:
                raise Unavailable(f"events of one body do not lie side by side: {receipt}")
            events.append(np.arange(first, last + 1))
        return np.repeat(np.concatenate(events), self.together)[: len(texts)], seconds

    async def wait_passed(self, position: int) -> None:
        """Wait until continuous queries have taken in all up to a position. Raises Unavailable without progress."""
        head, since = -1, time.perf_counter()
        while (now := self.outbox.head(OutboxLane.CONTINUOUS)) < position:
            if now != head:
                head, since = now, time.perf_counter()
            if time.perf_counter() - since > PATIENCE:
                raise Unavailable(f"continuous queries have stood at {now} for {PATIENCE:.0f} s, before {position}")
            await asyncio.sleep(0.02)

    def read_heartbeat(self) -> Report:
        found: Report = self.broker.up.heartbeat().detail.get("continuous", {})
        return found

    async def wait_heartbeat(self, position: int) -> Report:
        """Return the figures of the pipeline on continuous queries, once they are about that position."""
        while (found := self.read_heartbeat()).get("position", -1) < position:
            await asyncio.sleep(0.1)
        return found


def run(options: ContinuousOptions, say: Say) -> Report:
    """Raises Disagreement where an answer is not right."""
    machine = Machine()
    report = _run(options, say)
    if options.growth:
        say(f"the same with {BASE_QUERIES} questions that have as many answers")
        few = _run(replace(options, queries=BASE_QUERIES), say)
        report["growth"] = {
            "from": BASE_QUERIES,
            "triples_per_s": few["triples_per_s"],
            "answers": few["answers"],
            "times": round(few["triples_per_s"] / report["triples_per_s"], 2),
        }
    return {"machine": machine.describe(oxigraph=ox.__version__), **report}


def _run(options: ContinuousOptions, say: Say) -> Report:
    say("starting the broker")
    with start_broker(strategy=options.strategy) as broker:
        return uvloop.run(_measure(broker, options, say))


async def _measure(broker: Broker, options: ContinuousOptions, say: Say) -> Report:
    kind = KINDS[options.workload]
    workload = kind.make(options.queries, options.triples)
    triples = workload.triples(options.triples)
    report: Report = {name: value for name, value in vars(options).items() if name != "growth"}
    async with AsyncClient(broker.settings.url) as client:
        session = Session(broker, client, workload, options.together)
        say(f"registering {options.queries:,} questions")
        made, learned = await session.register(**({} if kind.span is None else {"span": kind.span}))
        say(f"warming up with {WARM_UP:,} triples")
        warm, _ = await session.publish(write_triples(workload, workload.triples(WARM_UP, part=1)))
        await session.wait_passed(int(warm.max()))
        before = await session.wait_heartbeat(int(warm.max()))
        say(f"publishing {options.triples:,} triples")
        samples, began = list[tuple[int, int]](), time.perf_counter()
        async with _sample_sizes(session, samples):
            positions, accepted = await session.publish(write_triples(workload, triples))
            await session.wait_passed(int(positions.max()))
            seconds = time.perf_counter() - began
        after = await session.wait_heartbeat(int(positions.max()))
        say("checking the answers")
        published = PublishedTriples(triples, positions, kind.span)
        checked = await asyncio.to_thread(_check, session, published, int(warm.max()))
        say("listening")
        delays = await _measure_delays(session)
    return {
        **report,
        "register_s": round(made, 2),
        "learned_s": round(learned, 2),
        "triples_per_s": round(options.triples / seconds),
        "accepted_per_s": round(options.triples / accepted),
        "memory": _summarize_sizes(samples),
        **checked,
        **delays,
        "state_rows": after["state_rows"],
        "state_bytes": after["state_bytes"],
        "batches": after["batch"] - before["batch"],
        "loads": measure_loads(options.strategy, before, after),
    }


def _check(session: Session, published: PublishedTriples, after: int) -> Report:
    """Count the answers, each compared with those found beside the engine. Raises Disagreement."""
    workload = session.workload
    groups = find_groups(session.broker.settings, workload, session.ids)
    delivered = DeliveredAnswers.read(session.outbox, after)
    check_rows(delivered.rows, expect_rows(workload, published, groups))
    sample = check_sample(workload, published, groups, delivered)
    answers = delivered.count(groups[each] for each in workload.questions)
    return {"answers": answers, "checked": {"answers": len(delivered.rows), **sample}}


@asynccontextmanager
async def _sample_sizes(session: Session, samples: list[tuple[int, int]]) -> AsyncIterator[None]:
    """Sample the pipeline's memory and the rows of state every second, and once in the end."""

    def sample() -> tuple[int, int]:
        rows = session.read_heartbeat().get("state_rows", 0)
        return session.broker.measure_pipeline().memory, rows

    async def watch() -> None:
        while True:
            samples.append(await asyncio.to_thread(sample))
            await asyncio.sleep(1.0)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    samples.append(await asyncio.to_thread(sample))


def _summarize_sizes(samples: Sequence[tuple[int, int]]) -> Report:
    """Leave out the first quarter: it fills the state."""
    quarter = max(1, len(samples) // 4)
    parts = (samples[quarter : 2 * quarter] or samples, samples[-quarter:])
    second, last = (mean(memory for memory, _ in part) for part in parts)
    return {
        "second_quarter_mb": round(second / 1e6),
        "last_quarter_mb": round(last / 1e6),
        "times": round(last / second, 3),
        "most_rows": max(rows for _, rows in samples),
    }


def measure_spread(loads: Sequence[int]) -> dict[str, float]:
    """Return the relative standard deviation in per cent, and the share of buckets with any load."""
    counts = np.asarray(loads, float)
    average = float(counts.mean()) if len(counts) else 0.0
    return {
        "count": len(counts),
        "rsd_percent": round(100 * float(counts.std()) / average, 1) if average else 0.0,
        "share_at_work": round(float((counts > 0).mean()), 4) if len(counts) else 0.0,
    }


def measure_loads(strategy: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Report:
    """Return how evenly rows were spread over buckets between two heartbeats, and how many addresses were ever used,
    beside the paper."""
    came = np.asarray(after["loads"]) - np.asarray(before.get("loads") or np.zeros(len(after["loads"])))
    used = after["addresses"]
    share = round(used / ADDRESSES, 4)
    addresses = {"of": ADDRESSES, "at_work": used, "share_at_work": share, "paper_at_work": PAPER[strategy]}
    return {"buckets": measure_spread(came.tolist()), "addresses": addresses}


async def _measure_delays(session: Session) -> Report:
    """Measure from the publication of the last piece of an answer to its arrival. All other pieces are there first; the
    last ones come one by one, at a steady rate."""
    workload, first = session.workload, dict[Conjunction, int]()
    for number, question in enumerate(workload.questions):
        first.setdefault(question, number)
    numbers = list(first.values())
    asked = numbers[:: max(1, len(numbers) // LISTENERS)][:LISTENERS]
    paths = [f"/queries/{session.ids[number]}/answers" for number in asked]
    async with listen(session.broker.address, paths, BASE) as arrivals:
        turns = (
            (workload.questions[asked[turn % len(asked)]], session.published + turn) for turn in range(RATE * SECONDS)
        )
        made = [write_pieces(workload, *turn) for turn in turns]
        positions, _ = await session.publish([text for each in made for text in each[:-1]])
        await session.wait_passed(int(positions.max()))
        last = enumerate((each[-1] for each in made), session.published)
        bodies = ((number, f"{text} <{BASE}e/{number}> .\n".encode()) for number, text in last)
        sent, position = await publish_steadily(session.client, STREAM, bodies, RATE)
        session.published += len(sent)
        await session.wait_passed(position)
        # Some events complete answers of several questions, so that it is not enough to count.
        until = time.perf_counter() + DELAY_PATIENCE
        while not sent.keys() <= {event for _, event in arrivals.counts} and time.perf_counter() < until:
            await asyncio.sleep(0.02)
    counts = {event: count for (_, event), count in arrivals.counts.items() if event in sent}
    taken = arrivals.delays(sent)
    return {
        **summarize(taken, {"p50_ms": 0.5, "p99_ms": 0.99}),
        "delays": {
            "listeners": len(asked),
            "answers_per_s": RATE,
            "heard": len(taken),
            "lost": len(sent.keys() - counts.keys()),
            "doubled": sum(count - 1 for count in counts.values()),
        },
    }
