"""`bench hour`: an hour of commits with the maintenance that is due beside them, as fast as the machine goes.

While maintenance runs, time passes as in production, with a commit a second; otherwise a second takes as long as its
commit. So maintenance has as much to do as in production, and an hour takes some minutes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import RenderableType

from bench.city import MADE_BY, QUADS, RESULT, RESULT_TIME, STREAMS, Day, write_time
from bench.harness import Disagreement, Machine, Report, Say, make_directory, measure_directory
from bench.history import measure_query
from bench.plots import Panel, draw_sheet, draw_text
from bench.spark import start_spark
from bench.tables import list_figures, list_rows
from triplewire.config import Settings
from triplewire.history.duckdb import DuckDbEngine
from triplewire.history.executor import HistoryExecutor
from triplewire.history.worker import PREPARE_SECONDS
from triplewire.model.clock import Clock, ManualClock, SystemClock
from triplewire.service.pipeline import maintenance_rules, open_maintenance
from triplewire.spark.jobs.maintenance import MAINTENANCE_SECONDS, LakeMaintenance, MaintenanceRules
from triplewire.spark.jobs.workers import run_tasks
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.maintenance import TaskRunner, fresh_files
from triplewire.storage.lake.ports import CommitBatch, LakeReader, Snapshot, VersionOrTime
from triplewire.storage.lake.read_counts import ReadCounter
from triplewire.storage.log.appending import entries_table, entry_rows

RATE = 1_000
"""Events a second."""
MINUTE = 60
FILES = 2
"""Files of a commit: two tasks write one each."""
_SAMPLE_SECONDS = 20
"""Simulated seconds between two samples: maintenance is not in step with them."""
_CONSTANTS = 5
_FIRST, _SECONDS = 10, 30
"""The part of the first minute that queries are about, in seconds, and how many constants of a kind they have."""
_WARM_UP, _ROUNDS = 3, 15
"""Rounds of the comparison in the end: those that are not measured, and those that are."""


def make_day(rate: int) -> Day:
    """Return a day with so many events a second; the first of them are taken."""
    return Day(rate * 86_400 * QUADS)


class Commits:
    """A commit for each second, as the `store` query makes it, with a clock that goes by them."""

    def __init__(self, directory: Path, rate: int, clock: ManualClock) -> None:
        self.lake = DeltaLake(directory)
        self.done = 0
        self.seconds = 0.0
        """Seconds of the last commit and of reading the table after it; files are written before."""
        self._writer, self._rate, self._day, self._clock = FileWriter(directory), rate, make_day(rate), clock

    def commit(self) -> Snapshot:
        """Commit the next second; return the table after it."""
        first = self.done * self._rate
        events = [self._day.make_event(number) for number in range(first, first + self._rate)]
        stream = STREAMS[self.done % len(STREAMS)]
        entries = list(entry_rows(((stream, event) for event in events), count(first + 1), self._clock.now()))
        ends = [len(entries) * part // FILES for part in range(FILES + 1)]
        files = [
            self._writer.write(entries_table([entries[begin:end]])) for begin, end in pairwise(ends) if begin < end
        ]
        began = time.perf_counter()
        self.lake.commit(CommitBatch("bench", self.done, first + self._rate), files)
        found = self.lake.files()
        self.seconds = time.perf_counter() - began
        self.done += 1
        self._clock.advance(1.0)
        return found

    def close(self) -> None:
        self._writer.close()


class MaintenanceThread:
    """Runs of the pipeline's maintenance, one at a time, with as long a pause, by the clock, as in the pipeline."""

    def __init__(self, maintenance: LakeMaintenance, clock: Clock) -> None:
        self.maintenance = maintenance
        self.taken: list[float] = []
        """Real seconds of each run."""
        self._clock, self._ended = clock, clock.ticks()
        self._running: Future[float] | None = None
        self._thread = ThreadPoolExecutor(1, "maintenance")

    @property
    def busy(self) -> bool:
        return self._running is not None and not self._running.done()

    def begin(self) -> None:
        """Begin the next run if it is due. Raises the error of the run before."""
        self._settle()
        if self._running is None and self._clock.ticks() - self._ended >= MAINTENANCE_SECONDS:
            self._running = self._thread.submit(self._run)

    def rest(self, seconds: float | None) -> None:
        """Wait until the run has ended, but so many seconds at most."""
        if self._running is not None and (seconds is None or seconds > 0):
            wait([self._running], seconds)
        self._settle()

    def close(self) -> None:
        self._thread.shutdown()

    def _run(self) -> float:
        began = time.perf_counter()
        self.maintenance.run_due()
        return time.perf_counter() - began

    def _settle(self) -> None:
        if self._running is not None and self._running.done():
            done, self._running = self._running, None
            self._ended = self._clock.ticks()
            self.taken.append(done.result())


def write_lookup(day: Day, number: int) -> str:
    return f"SELECT * {{ GRAPH <{day.make_event(number).id}> {{ ?s ?p ?o }} }}"


def write_queries(day: Day, rate: int) -> dict[str, Sequence[str]]:
    """Return queries about the first minute, whose answers stay the same: readings of a sensor in a stretch of time, an
    event by its id, and the count of a stretch."""

    def within(first: int, last: int) -> str:
        return f"FILTER(?t >= {write_time(timedelta(seconds=first))} && ?t < {write_time(timedelta(seconds=last))})"

    def sensor_of(number: int) -> str:
        return next(quad.object for quad in day.make_event(number).quads if quad.predicate == MADE_BY)

    numbers = [(_FIRST * _CONSTANTS + _SECONDS * each) * rate // _CONSTANTS for each in range(_CONSTANTS)]
    whole, step = within(_FIRST, _FIRST + _SECONDS), _SECONDS // _CONSTANTS
    return {
        "sensor": [
            f"SELECT ?t ?v {{ ?o {MADE_BY} {sensor_of(each)} ; {RESULT} ?v ; {RESULT_TIME} ?t {whole} }}"
            for each in numbers
        ],
        "event": [write_lookup(day, each) for each in numbers],
        "stretch": [
            f"SELECT (COUNT(*) AS ?n) {{ ?o {RESULT_TIME} ?t {within(each, each + step)} }}"
            for each in range(_FIRST, _FIRST + _SECONDS, step)
        ],
    }


class FrozenLake:
    """A lake at one version, whatever happens to it later: its files have a second name each."""

    def __init__(self, snapshot: Snapshot, directory: Path) -> None:
        for each in snapshot.files:
            link = directory / each.path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.hardlink_to(Path(snapshot.table) / each.path)
        self._snapshot = replace(snapshot, table=str(directory))

    def files(self, at: VersionOrTime | None = None) -> Snapshot:
        return self._snapshot


@dataclass(frozen=True)
class QueryCost:
    """Costs of a kind of query: the median time and CPU time in milliseconds, the mean of files opened, and all rows.
    CPU time is that of the whole process, maintenance included."""

    milliseconds: float
    cpu: float
    files: float
    rows: int


class QueryTimer:
    """Asks as a query process does, which prepares new files while it is idle.

    Queries are answered from files alone: a query process holds a small lake in memory, but one at 1,000 events a
    second is too large for that after five minutes, and before and after could not be compared.
    """

    def __init__(
        self, lake: LakeReader, directory: Path, queries: Mapping[str, Sequence[str]], reads: ReadCounter | None = None
    ) -> None:
        self._history = HistoryExecutor(lake, DuckDbEngine(directory, reads=reads, copies=False))
        self._queries = queries
        self._known: dict[str, object] = {}

    def prepare(self) -> None:
        while self._history.prepare():
            pass

    def measure_all(self) -> dict[str, QueryCost]:
        """Raises Disagreement where an answer is not the same as before."""
        return {name: self._measure(texts) for name, texts in self._queries.items()}

    def measure_once(self, text: str) -> float:
        """Return the milliseconds that a query takes, with all that has come since the last one."""
        return round(self._time(text)[0] * 1_000, 1)

    def close(self) -> None:
        self._history.close()

    def _measure(self, texts: Sequence[str]) -> QueryCost:
        taken, cpu = (round(median(each) * 1_000, 1) for each in zip(*map(self._time, texts), strict=True))
        reads = [measure_query(self._history, text) for text in texts]
        files = round(sum(each.files for each in reads) / len(reads), 1)
        return QueryCost(taken, cpu, files, sum(each.rows for each in reads))

    def _time(self, text: str) -> tuple[float, float]:
        began, worked = time.perf_counter(), time.process_time()
        found = self._history.answer_now(text)["results"]["bindings"]
        seconds = time.perf_counter() - began, time.process_time() - worked
        given = sorted(map(repr, found))
        if self._known.setdefault(text, given) != given:
            raise Disagreement(f"{text} has an answer of {len(given)} rows that is not what it was")
        return seconds


@dataclass(frozen=True)
class HourSample:
    """The lake and the costs of queries after so many simulated seconds."""

    second: int
    files: int
    fresh: int
    zones: int
    bytes: int
    versions: int
    """Versions that the table's log still has."""
    commit_ms: float
    """The median time of a commit and of reading the table, since the sample before."""
    busy: bool
    """Whether maintenance was running."""
    newest_ms: float
    """The time, before all else, to ask for an event of the last second."""
    costs: dict[str, QueryCost]

    def to_report(self) -> Report:
        figures = {name: value for name, value in vars(self).items() if name != "costs"}
        for name, measure in {"ms": "milliseconds", "cpu_ms": "cpu", "opened": "files"}.items():
            figures[name] = {query: getattr(each, measure) for query, each in self.costs.items()}
        return figures


def run(minutes: int, say: Say) -> Report:
    """Simulate so many minutes, of which the first is not measured; a day at most."""
    machine, began = Machine(), time.perf_counter()
    with make_directory() as directory:
        settings = Settings(data=directory.absolute())
        say("starting Spark")
        with start_spark("hour", settings) as spark:
            runner, tasks = partial(run_tasks, spark), spark.sparkContext.defaultParallelism
            with closing(HourRun(minutes, RATE, settings, maintenance_rules(settings), runner, tasks)) as hour:
                report = hour.measure(say)
    return {**report, "seconds": round(time.perf_counter() - began, 1), "machine": machine.describe()}


class HourRun:
    """The time of a run, over an empty lake."""

    def __init__(
        self,
        minutes: int,
        rate: int,
        settings: Settings,
        rules: MaintenanceRules,
        runner: TaskRunner,
        tasks: int = 1,
    ) -> None:
        self._minutes, self._rate, self._directory = minutes, rate, settings.lake.absolute()
        # The clock begins with the time as it is: files of the disk have it, too.
        clock = ManualClock(SystemClock().now())
        context = replace(open_maintenance(self._directory), run=runner, tasks=tasks)
        self._maintenance = MaintenanceThread(LakeMaintenance(context, rules, clock), clock)
        self._commits = Commits(self._directory, rate, clock)
        self._day = make_day(rate)
        self._queries = write_queries(self._day, rate)
        reads = ReadCounter(self._directory.with_name("reads"), clock)
        self._timer = QueryTimer(DeltaLake(self._directory), self._directory, self._queries, reads)
        self._frozen = Path(settings.data, "frozen").absolute()
        self._first: FrozenLake | None = None
        self._samples: list[HourSample] = []
        self._most = 0
        self._taken: list[float] = []

    def measure(self, say: Say) -> Report:
        """Let the time pass. Raises Disagreement, and the error of maintenance."""
        for second in range(1, self._minutes * MINUTE + 1):
            snapshot = self._pass_second()
            if second == min(2, self._minutes) * MINUTE:
                self._first = FrozenLake(snapshot, self._frozen)
            if second >= MINUTE and second % _SAMPLE_SECONDS == 0:
                self._samples.append(self._sample(second, snapshot))
            if second % PREPARE_SECONDS == 0:
                self._timer.prepare()
            if second % MINUTE == 0:
                say(_write_progress(self._samples[-1]))
        self._maintenance.rest(None)
        return self._report()

    def close(self) -> None:
        for each in (self._maintenance, self._commits, self._timer):
            each.close()

    def _pass_second(self) -> Snapshot:
        """Commit, and wait for the rest of the second while maintenance runs."""
        began = time.perf_counter()
        snapshot = self._commits.commit()
        self._taken.append(self._commits.seconds)
        self._most = max(self._most, len(snapshot.files))
        self._maintenance.begin()
        self._maintenance.rest(began + 1.0 - time.perf_counter())
        return snapshot

    def _sample(self, second: int, snapshot: Snapshot) -> HourSample:
        busy, zones = self._maintenance.busy, {each.zone for each in snapshot.files} - {None}
        versions = sum(1 for _ in (self._directory / "_delta_log").glob("*.json"))
        figures = len(snapshot.files), len(fresh_files(snapshot)), len(zones), snapshot.size, versions
        taken, self._taken = round(median(self._taken) * 1_000, 1), []
        newest = self._timer.measure_once(write_lookup(self._day, second * self._rate - 1))
        return HourSample(second, *figures, taken, busy, newest, self._timer.measure_all())

    def _report(self) -> Report:
        first, last, taken = self._samples[0], self._samples[-1], self._maintenance.taken
        events, moved = last.second * self._rate, self._maintenance.maintenance.state()["moved"]
        assert self._first is not None
        with closing(QueryTimer(self._first, self._frozen, self._queries)) as before:
            in_turn = _compare_in_turn(before, self._timer)
        return {
            "minutes": self._minutes,
            "events": events,
            "quads": events * QUADS,
            "files": {"after_a_minute": first.files, "most": self._most, "at_the_end": last.files},
            "in_turn": in_turn,
            **compare_samples(self._samples),
            "rows": {name: each.rows for name, each in last.costs.items()},
            "house": {
                "turns": len(taken),
                "seconds": round(sum(taken), 1),
                "share": round(sum(taken) / last.second, 2),
                "longest_s": round(max(taken, default=0.0), 1),
                "rewritten": round(moved / (events * QUADS), 2),
            },
            "disk_bytes": measure_directory(self._directory),
            "samples": [each.to_report() for each in self._samples],
        }


def _compare_in_turn(first: QueryTimer, last: QueryTimer) -> Report:
    """Compare the lake after two minutes with that in the end. Both are asked in the end, in turn: the speed of a
    machine changes within an hour. Between rounds that are not measured files are prepared, as when a process idles."""
    for _ in range(_WARM_UP):
        for each in (first, last):
            each.measure_all()
            each.prepare()
    rounds = [(first.measure_all(), last.measure_all()) for _ in range(_ROUNDS)]
    found: Report = {}
    for name, measure in {"ms": "milliseconds", "cpu_ms": "cpu", "opened": "files"}.items():
        then, now = (_medians([each[side] for each in rounds], measure) for side in (0, 1))
        found[name] = {"after_two_minutes": then, "at_the_end": now}
        if measure != "files":
            found[name]["ratio"] = _ratios(then, now)
    return found


def compare_samples(samples: Sequence[HourSample]) -> Report:
    """Compare costs in the second minute with those in the last one, without maintenance; and return those beside
    maintenance, at any time."""
    end = samples[-1].second
    parts = {
        "after_a_minute": _resting([each for each in samples if each.second <= 2 * MINUTE]),
        "at_the_end": _resting([each for each in samples if each.second >= end - MINUTE]),
        "beside_housekeeping": [each for each in samples if each.busy],
    }
    found: Report = {}
    for times, ratio, measure in (("latency_ms", "ratio", "milliseconds"), ("cpu_ms", "cpu_ratio", "cpu")):
        found[times] = {name: _medians([each.costs for each in some], measure) for name, some in parts.items()}
        found[ratio] = _ratios(found[times]["after_a_minute"], found[times]["at_the_end"])
    newest = {name: round(median(each.newest_ms for each in some), 1) for name, some in parts.items() if some}
    return {**found, "newest_ms": newest}


def _resting(samples: Sequence[HourSample]) -> Sequence[HourSample]:
    """Return the samples without maintenance; all of them if it always ran."""
    return [each for each in samples if not each.busy] or samples


def _medians(rounds: Sequence[Mapping[str, QueryCost]], measure: str) -> dict[str, float]:
    names = rounds[0] if rounds else ()
    return {name: round(median(getattr(each[name], measure) for each in rounds), 1) for name in names}


def _ratios(first: Mapping[str, float], last: Mapping[str, float]) -> dict[str, float]:
    return {name: round(last[name] / max(value, 0.1), 2) for name, value in first.items()}


def _write_progress(sample: HourSample) -> str:
    costs = sample.costs.items()
    times = ", ".join(f"{name} {each.milliseconds:g} ms ({each.files:g} files)" for name, each in costs)
    held = f"{sample.files:,} files ({sample.fresh} fresh) in {sample.zones} zones, {sample.bytes / 1e6:,.0f} MB"
    return f"minute {sample.second // MINUTE}: {held}; {times}"


def make_tables(report: Report) -> list[RenderableType]:
    samples = [each for each in report["samples"] if each["second"] % 60 == 0]
    rows = ({**each, **each["ms"]} for each in [*samples[: -1 : max(1, len(samples) // 20)], samples[-1]])
    columns = {name: name for name in ("second", "files", "fresh", "zones", "bytes", "versions")}
    columns |= {"commit_ms": "commit, ms", **{name: f"{name}, ms" for name in report["ratio"]}}
    title = f"{report['quads']:,} quads in {report['minutes']} minutes"
    figures = {name: each for name, each in report.items() if name != "samples"}
    return [list_rows(title, columns, rows), list_figures(figures, "hour")]


def draw(report: Mapping[str, Any]) -> str:
    """Draw three panels over the minutes: files, files opened for each query, and its CPU time."""
    samples = report["samples"]
    minutes = [each["second"] / 60 for each in samples]
    panels = {
        "files of the lake": samples,
        "files opened for an answer": [each["opened"] for each in samples],
        "CPU time of an answer, milliseconds": [each["cpu_ms"] for each in samples],
    }
    title = f"{report['minutes']} minutes of {report['events']:,} events: {report['quads']:,} quads"
    parts = [draw_text(10, 20, title, size=14)]
    for number, (name, rows) in enumerate(panels.items()):
        series = ("files", "fresh") if rows is samples else tuple(rows[0])
        lines = {each: [*zip(minutes, (row[each] for row in rows), strict=True)] for each in series}
        parts += Panel(name, "minutes", lines).draw(70, 64 + number * 200, 560, 130)
    return draw_sheet(760, 660, parts)
