"""`bench match`: the pipeline's own `match` transform in Spark, beside pyoxigraph merely parsing the same events."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from triplewire.bench.machine import description, reference_ms
from triplewire.bench.match_counts import at, matches_of
from triplewire.bench.match_entries import Entries, write
from triplewire.bench.match_oxigraph import VERSION, brute_force, parse_rate
from triplewire.bench.match_registry import Standing, stand
from triplewire.bench.match_spark import Engine, engine, parts
from triplewire.bench.match_workloads import Chosen, choose
from triplewire.model.errors import TriplewireError

BASE_SUBSCRIPTIONS = 1_000
"""Those beside which growth is measured."""
WARM_UP = 20_000
PARSED = 20_000
"""Events of each run that pyoxigraph parses: it takes as long for each of them as for each of all."""
SAMPLE = 200
WHOLE_SAMPLE = 20
"""Events that are checked by brute force; fewer where each pair is a query of its own."""

Say = Callable[[str], None]


class Disagreement(TriplewireError):
    """What we matched is not what brute force matches: the figures mean nothing."""


@dataclass(frozen=True)
class Plan:
    """What to run. `growth` also measures few subscriptions with as many matches."""

    workload: str = "paths"
    subscriptions: int = 100_000
    events: int = 200_000
    runs: int = 5
    growth: bool = False


@dataclass(frozen=True)
class Measured:
    """Runs over one registry: events a second of each, and the last of them."""

    rates: list[float]
    parsed: list[float]
    matches: list[int]
    entries: Entries
    table: pa.Table

    @property
    def rate(self) -> float:
        return median(self.rates)


@dataclass(frozen=True)
class Bench:
    """One benchmark on its way. No event is drawn twice."""

    plan: Plan
    engine: Engine
    directory: Path
    say: Say

    def stand(self, chosen: Chosen, name: str) -> Standing:
        self.say(f"{chosen.subscriptions:,} subscriptions into a registry")
        return stand(chosen, self.directory / name)

    def warm(self, standing: Standing) -> float:
        """Let the workers load the registry and match events that are not measured. The seconds that it took."""
        entries = self._entries(standing, 0, WARM_UP)
        return self.engine.match(entries, standing.ports)[0]

    def measure(self, standing: Standing) -> Measured:
        rates, parsed, counts = list[float](), list[float](), list[int]()
        entries = None
        for turn in range(self.plan.runs):
            if entries is not None:
                entries.drop()
            entries = self._entries(standing, 1 + turn, self.plan.events)
            seconds, table = self.engine.match(entries, standing.ports)
            rates.append(len(entries) / seconds)
            parsed.append(parse_rate(entries.texts(PARSED)))
            counts.append(matches_of(table, standing.members))
            self.say(f"run {turn + 1} of {self.plan.runs}: {rates[-1]:,.0f} events/s, parsing {parsed[-1]:,.0f}")
        assert entries is not None
        return Measured(rates, parsed, counts, entries, table)

    def check(self, standing: Standing, measured: Measured) -> dict[str, Any]:
        """Events of the last run, each against every subscription. Raises Disagreement."""
        plain = all(each.plain for each in standing.chosen.workload.templates)
        sample = measured.entries.sample(SAMPLE if plain else WHOLE_SAMPLE)
        self.say(f"checking {len(sample)} events by brute force")
        right = brute_force(sample, standing.questions())
        for each in sample:
            found = matches_of(at(measured.table, each.position), standing.members)
            agree(each.event, found, right[each.position])
        return {"events": len(sample), "matches": right.total()}

    def _entries(self, standing: Standing, turn: int, count: int) -> Entries:
        """Events of the `turn`th kind of numbers, after everything that was ever made."""
        first = turn * max(self.plan.events, WARM_UP)
        place = self.directory / f"events-{len(standing)}-{turn}"
        return write(standing.chosen.workload, range(first, first + count), standing.last + first, place, parts(count))


def run(plan: Plan, say: Say) -> dict[str, Any]:
    """Everything that the benchmark measures, by name. Raises Disagreement, or Unsupported for a workload that there
    is not."""
    chosen, before = choose(plan.workload, plan.subscriptions), reference_ms()
    say("starting Spark")
    with tempfile.TemporaryDirectory(prefix="triplewire-bench-") as directory, engine() as running:
        report = _measure(Bench(plan, running, Path(directory), say), chosen)
    machine = {**description(), "oxigraph": VERSION, "reference_ms": [round(before), round(reference_ms())]}
    return {"machine": machine, **report}


def _measure(bench: Bench, chosen: Chosen) -> dict[str, Any]:
    plan = bench.plan
    few = choose(plan.workload, min(BASE_SUBSCRIPTIONS, -(-plan.subscriptions // 10)), chosen.matches)
    base = bench.stand(few, "few")
    bench.say("warming up")
    bench.warm(base)
    grown = bench.measure(base) if plan.growth else None
    empty = bench.engine.worker_bytes()
    standing = bench.stand(chosen, "all")
    bench.say("loading them")
    ready = bench.warm(standing)
    full = bench.engine.worker_bytes()
    measured = bench.measure(standing)
    return {
        **_told(plan, standing, measured),
        "passed_on_per_s": round(len(measured.entries) / bench.engine.pass_on(measured.entries)),
        "load_s": round(ready, 1),
        "bytes_per_subscription": round(max(full - empty, _taken(standing.ports.index_files)) / len(standing)),
        "memory_mb": round(bench.engine.memory() / 1e6),
        "growth": None if grown is None else _growth(plan, len(base), grown, measured),
        "checked": bench.check(standing, measured),
    }


def agree(event: str, found: int, right: int) -> None:
    if found != right:
        raise Disagreement(f"{event}: {found} subscriptions were matched, brute force matches {right}")


def _told(plan: Plan, standing: Standing, measured: Measured) -> dict[str, Any]:
    parsing = median(measured.parsed)
    return {
        "workload": plan.workload,
        "subscriptions": len(standing),
        "shapes": standing.shapes,
        "events": plan.events,
        "runs": [round(rate) for rate in measured.rates],
        "events_per_s": round(measured.rate),
        "matches": {
            "per_event": round(median(measured.matches) / plan.events, 3),
            "all": sum(measured.matches),
        },
        "parse_events_per_s": round(parsing),
        "ratio": round(measured.rate / parsing, 3),
    }


def _taken(directory: Path) -> int:
    """What the files of a directory take of the disk: the least that is mapped of them."""
    return sum(each.stat().st_blocks * 512 for each in directory.rglob("*") if each.is_file())


def _growth(plan: Plan, base: int, grown: Measured, measured: Measured) -> dict[str, Any]:
    """How many times as long an event takes, with so many subscriptions more and as many matches."""
    return {
        "from": base,
        "events_per_s": round(grown.rate),
        "matches_per_event": round(median(grown.matches) / plan.events, 3),
        "times": round(grown.rate / measured.rate, 2),
    }
