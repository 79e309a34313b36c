"""`bench hour`: an hour of commits with the housekeeping that is due beside them, as fast as the machine goes.

While the housekeeper works, time goes as it does in production, a commit a second; while it rests, a second takes as
long as its commit. So it has as much to catch up with as in production, and an hour takes some minutes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from triplewire.bench.history_data import QUADS
from triplewire.bench.history_oxigraph import size
from triplewire.bench.hour_commits import Commits, day
from triplewire.bench.hour_comparisons import in_turn, medians, ratios
from triplewire.bench.hour_questions import Asked, Asker, Kept, questions, whole
from triplewire.bench.hour_turns import Turns
from triplewire.bench.machine import description, reference_ms
from triplewire.config import Settings
from triplewire.history.worker import PREPARE_SECONDS
from triplewire.model.clock import ManualClock, SystemClock
from triplewire.service.pipeline import maintenance_rules, open_maintenance
from triplewire.spark.jobs.maintenance import LakeMaintenance
from triplewire.spark.jobs.workers import run_tasks
from triplewire.spark.session import start_session
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.maintenance import TaskRunner, fresh_files
from triplewire.storage.lake.ports import Snapshot
from triplewire.storage.lake.read_counts import ReadCounter

MINUTE = 60
_EVERY = 20
"""Simulated seconds between two samples: the turns of the housekeeper are not in step with it."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """For how many minutes, of which the first is not measured, and how many events a second. One day at most."""

    minutes: int = 60
    rate: int = 1_000


@dataclass(frozen=True)
class Sample:
    """The lake, and what it took to ask it, after so many simulated seconds."""

    second: int
    files: int
    fresh: int
    zones: int
    bytes: int
    versions: int
    """That the table's log still has."""
    commit_ms: float
    """The median time of a commit and a look at the table, since the sample before."""
    busy: bool
    """Was the housekeeper at work?"""
    newest_ms: float
    """What it took, before all else, to ask for an event of the last second."""
    asked: dict[str, Asked]

    def told(self) -> dict[str, Any]:
        figures = {name: value for name, value in vars(self).items() if name != "asked"}
        measures = {"ms": "milliseconds", "cpu_ms": "cpu", "opened": "files"}
        asked = {
            told: {name: getattr(each, measure) for name, each in self.asked.items()}
            for told, measure in measures.items()
        }
        return {**figures, **asked}


def run(plan: Plan, say: Say) -> dict[str, Any]:
    """Everything that the benchmark measures, by name."""
    before, began = reference_ms(), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="triplewire-hour-") as directory:
        settings = Settings(data=Path(directory).absolute())
        say("starting Spark")
        spark = start_session("triplewire bench hour", settings.master, settings.driver_memory)
        try:
            runner = partial(run_tasks, spark)
            with closing(Hour(plan, settings, runner, spark.sparkContext.defaultParallelism)) as hour:
                report = hour.passed(say)
        finally:
            spark.stop()
    machine = {**description(), "reference_ms": [round(before), round(reference_ms())]}
    return {**report, "seconds": round(time.perf_counter() - began, 1), "machine": machine}


class Hour:
    """The time of a plan, over an empty lake."""

    def __init__(self, plan: Plan, settings: Settings, runner: TaskRunner, tasks: int) -> None:
        self._plan = plan
        self._table = settings.lake.absolute()
        # Beginning with the time as it is: files of the disk have it, too.
        self._clock = ManualClock(SystemClock().now())
        house = replace(open_maintenance(self._table), run=runner, tasks=tasks)
        self._turns = Turns(LakeMaintenance(house, maintenance_rules(settings), self._clock), self._clock)
        self._commits = Commits(self._table, plan.rate, self._clock)
        self._day = day(plan.rate)
        self._questions = questions(self._day, plan.rate)
        reads = ReadCounter(self._table.with_name("reads"), self._clock)
        self._asker = Asker(DeltaLake(self._table), self._table, self._questions, reads)
        self._kept = Path(settings.data, "kept").absolute()
        self._first: Kept | None = None
        self._samples: list[Sample] = []
        self._most = 0
        self._taken: list[float] = []

    def passed(self, say: Say) -> dict[str, Any]:
        """Let the time go by. Raises Changed, and what the housekeeper failed with."""
        for second in range(1, self._plan.minutes * MINUTE + 1):
            snapshot = self._second()
            if second == min(2, self._plan.minutes) * MINUTE:
                self._first = Kept(snapshot, self._kept)
            if second >= MINUTE and second % _EVERY == 0:
                self._samples.append(self._sample(second, snapshot))
            if second % PREPARE_SECONDS == 0:
                self._asker.prepare()
            if second % MINUTE == 0:
                say(_progress(self._samples[-1]))
        self._turns.rest(None)
        return self._report()

    def close(self) -> None:
        for each in (self._turns, self._commits, self._asker):
            each.close()

    def _second(self) -> Snapshot:
        """A commit, and for as long as the housekeeper works the rest of a second."""
        began = time.perf_counter()
        snapshot = self._commits.commit()
        self._taken.append(self._commits.seconds)
        self._most = max(self._most, len(snapshot.files))
        self._turns.begin()
        self._turns.rest(began + 1.0 - time.perf_counter())
        return snapshot

    def _sample(self, second: int, snapshot: Snapshot) -> Sample:
        busy, zones = self._turns.busy, {each.zone for each in snapshot.files} - {None}
        versions = sum(1 for _ in (self._table / "_delta_log").glob("*.json"))
        figures = len(snapshot.files), len(fresh_files(snapshot)), len(zones), snapshot.size, versions
        taken, self._taken = round(median(self._taken) * 1_000, 1), []
        newest = self._asker.first(whole(self._day, second * self._plan.rate - 1))
        return Sample(second, *figures, taken, busy, newest, self._asker.ask())

    def _in_turn(self) -> dict[str, Any]:
        assert self._first is not None
        with closing(Asker(self._first, self._kept, self._questions)) as before:
            return in_turn(before, self._asker)

    def _report(self) -> dict[str, Any]:
        first, last, spent = self._samples[0], self._samples[-1], self._turns.spent
        events, moved = last.second * self._plan.rate, self._turns.keeper.state()["moved"]
        return {
            "minutes": self._plan.minutes,
            "events": events,
            "quads": events * QUADS,
            "files": {"after_a_minute": first.files, "most": self._most, "at_the_end": last.files},
            "in_turn": self._in_turn(),
            **compared(self._samples),
            "rows": {name: each.rows for name, each in last.asked.items()},
            "house": {
                "turns": spent.turns,
                "seconds": round(spent.seconds, 1),
                "share": round(spent.seconds / last.second, 2),
                "longest_s": round(spent.longest, 1),
                "rewritten": round(moved / (events * QUADS), 2),
            },
            "disk_bytes": size(self._table),
            "samples": [each.told() for each in self._samples],
        }


def compared(samples: Sequence[Sample]) -> dict[str, Any]:
    """What questions took in the minute after the first and in the last one, while the housekeeper rested, and how much
    longer that is; and what they took while it worked, at any time."""
    end = samples[-1].second
    parts = {
        "after_a_minute": _resting([each for each in samples if each.second <= 2 * MINUTE]),
        "at_the_end": _resting([each for each in samples if each.second >= end - MINUTE]),
        "beside_housekeeping": [each for each in samples if each.busy],
    }
    times = {name: _medians(some, "milliseconds") for name, some in parts.items()}
    cpu = {name: _medians(some, "cpu") for name, some in parts.items()}
    newest = {name: round(median(each.newest_ms for each in some), 1) for name, some in parts.items() if some}
    return {
        "latency_ms": times,
        "ratio": _ratios(times),
        "cpu_ms": cpu,
        "cpu_ratio": _ratios(cpu),
        "newest_ms": newest,
    }


def _ratios(parts: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return ratios(parts["after_a_minute"], parts["at_the_end"])


def _resting(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Those in which the housekeeper had nothing to do; all of them if it always had."""
    return [each for each in samples if not each.busy] or samples


def _medians(samples: Sequence[Sample], measure: str) -> dict[str, float]:
    return medians([each.asked for each in samples], measure)


def _progress(sample: Sample) -> str:
    told = sample.asked.items()
    times = ", ".join(f"{name} {each.milliseconds:g} ms ({each.files:g} files)" for name, each in told)
    held = f"{sample.files:,} files ({sample.fresh} fresh) in {sample.zones} zones, {sample.bytes / 1e6:,.0f} MB"
    return f"minute {sample.second // MINUTE}: {held}; {times}"
