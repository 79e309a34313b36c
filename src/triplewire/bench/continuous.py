"""`bench continuous`: questions across events, by the real processes, over real sockets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import uvloop

from triplewire.bench.broker import Broker, broker
from triplewire.bench.continuous_check import Outcome, agree, expected, groups_of, sampled
from triplewire.bench.continuous_conjunctions import Workload
from triplewire.bench.continuous_delays import delays
from triplewire.bench.continuous_joins import Located
from triplewire.bench.continuous_loads import loads
from triplewire.bench.continuous_oxigraph import VERSION
from triplewire.bench.continuous_paths import Paths
from triplewire.bench.continuous_session import Sent, Session
from triplewire.bench.continuous_sizes import Sizes
from triplewire.bench.continuous_structures import Structures
from triplewire.bench.machine import description, reference_ms
from triplewire.client import AsyncClient
from triplewire.model.errors import Unsupported

BASE_QUERIES = 1_000
"""Those beside which growth is measured."""
WARM_UP = 40_000
SPAN = 30_000
"""Positions that an answer of the workload `windowed` may lie across."""
STRATEGIES = ("csbv", "cqc")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Sort:
    """How a workload is made, of how many questions and triples; and what is said beside each question."""

    make: Callable[[int, int], Workload]
    queries: int
    triples: int
    span: int | None = None


WORKLOADS: Mapping[str, Sort] = {
    "paths": Sort(lambda queries, _: Paths.of(queries), 100_000, 100_000),
    "structures": Sort(Structures.of, 1_000, 100_000),
    "windowed": Sort(lambda queries, _: Paths.of(queries), 100_000, 500_000, SPAN),
}


@dataclass(frozen=True)
class Plan:
    """What to run. `together` is the number of triples in an event; `growth` also measures few questions that have as
    many answers."""

    workload: str = "paths"
    queries: int = 100_000
    triples: int = 100_000
    strategy: str = "csbv"
    together: int = 1
    growth: bool = False

    @classmethod
    def of(cls, workload: str, queries: int | None, triples: int | None, **rest: Any) -> Plan:  # noqa: ANN401
        """As many as the workload is about, where nothing is said. Raises Unsupported for one that there is not."""
        sort = sort_of(workload)
        return cls(workload, queries or sort.queries, triples or sort.triples, **rest)


def sort_of(workload: str) -> Sort:
    if workload not in WORKLOADS:
        raise Unsupported(f"the workload `{workload}`", hint=f"there are {', '.join(WORKLOADS)}")
    return WORKLOADS[workload]


def run(plan: Plan, say: Say) -> dict[str, Any]:
    """Everything that the benchmark measures, by name. Raises Disagreement where an answer is not right."""
    before = reference_ms()
    report = _run(plan, say)
    if plan.growth:
        say(f"the same with {BASE_QUERIES} questions that have as many answers")
        few = _run(replace(plan, queries=BASE_QUERIES, growth=False), say)
        report["growth"] = {
            "from": BASE_QUERIES,
            "triples_per_s": few["triples_per_s"],
            "answers": few["answers"],
            "times": round(few["triples_per_s"] / report["triples_per_s"], 2),
        }
    machine = {**description(), "oxigraph": VERSION, "reference_ms": [round(before), round(reference_ms())]}
    return {"machine": machine, **report}


def _run(plan: Plan, say: Say) -> dict[str, Any]:
    say("starting the broker")
    with broker(strategy=plan.strategy) as running:
        return uvloop.run(_measured(running, plan, say))


async def _measured(running: Broker, plan: Plan, say: Say) -> dict[str, Any]:
    sort = sort_of(plan.workload)
    workload = sort.make(plan.queries, plan.triples)
    report: dict[str, Any] = {name: value for name, value in vars(plan).items() if name != "growth"}
    async with AsyncClient(running.settings.url) as client:
        session = Session(running, client, workload, plan.together)
        say(f"registering {plan.queries:,} questions")
        options = {} if sort.span is None else {"span": sort.span}
        made, learned = await session.register(options)
        report |= {"register_s": round(made, 2), "learned_s": round(learned, 2)}
        say(f"warming up with {WARM_UP:,} triples")
        warm = await session.publish(workload.triples(WARM_UP, part=1))
        await session.passed(warm.last)
        before = await session.figures(warm.last)
        say(f"publishing {plan.triples:,} triples")
        measured, sent = await _throughput(session, plan)
        after = await session.figures(sent.last)
        say("checking the answers")
        checked = await asyncio.to_thread(_checked, session, plan, sent, warm.last)
        say("listening")
        report |= measured | checked | await delays(session)
    return {
        **report,
        "state_rows": after["state_rows"],
        "state_bytes": after["state_bytes"],
        "batches": after["batch"] - before["batch"],
        "loads": loads(plan.strategy, before, after),
    }


async def _throughput(session: Session, plan: Plan) -> tuple[dict[str, Any], Sent]:
    triples = session.workload.triples(plan.triples)
    sizes = Sizes(session.broker)
    began = time.perf_counter()
    async with sizes.watched():
        sent = await session.publish(triples)
        await session.passed(sent.last)
        seconds = time.perf_counter() - began
    return {
        "triples_per_s": round(plan.triples / seconds),
        "accepted_per_s": round(plan.triples / sent.seconds),
        "memory": sizes.told(),
    }, sent


def _checked(session: Session, plan: Plan, sent: Sent, after: int) -> dict[str, Any]:
    """How many answers there were, each held to what was found beside the engine. Raises Disagreement."""
    workload, span = session.workload, sort_of(plan.workload).span
    groups = groups_of(session.broker.settings, workload, session.ids)
    located = Located(workload.triples(plan.triples), sent.positions, span)
    outcome = Outcome.of(session.outbox, after)
    agree(outcome.rows, expected(workload, located, groups))
    return {
        "answers": outcome.answers(groups[each] for each in workload.questions),
        "checked": {"answers": len(outcome.rows), **sampled(workload, located, groups, outcome)},
    }
