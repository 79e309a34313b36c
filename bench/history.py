"""`bench history`: how fast the lake takes quads in, their size on the disk, and how little a query reads.

The pipeline's real `store` query runs on Spark over a log that was filled before; pyoxigraph loads the same quads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from statistics import mean, median
from typing import Any, cast

import orjson
import pyoxigraph as ox
from pyspark.sql import SparkSession

from bench.city import HOURS, PREDICATES, QUADS, RESULT_TIME, STREAMS, Day, write_nquads, write_time
from bench.harness import Aim, Machine, Report, Say, make_directory, measure_children, measure_directory
from bench.plots import BLUE, GREY, ORANGE, Bar, draw_bars, draw_line, draw_sheet, draw_text, draw_titles
from bench.spark import start_spark
from triplewire.config import Settings
from triplewire.history.duckdb import DuckDbEngine
from triplewire.history.executor import HistoryExecutor
from triplewire.history.requests import HistoryRequest
from triplewire.model.clock import SystemClock
from triplewire.service.pipeline import open_maintenance
from triplewire.service.wiring import pipeline_ports
from triplewire.spark.jobs.streaming import JobContext, QueryJob, start_store
from triplewire.spark.jobs.workers import CpuCosts, run_tasks
from triplewire.storage.lake.balance import BalanceSettings
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.maintenance import MaintenanceProgress, compact
from triplewire.storage.lake.ports import Lake
from triplewire.storage.lake.rebalancing import rebalance
from triplewire.storage.log.ports import MeasuredLog, Publication
from triplewire.storage.log.sqlite import SqliteLog

BODY_EVENTS = 1_000
FIRST_EVENTS = 10
"""Events of the log that go all the way before the clock starts."""
FRESH_TIMES = 10
CONSTANTS = 8
"""Constants of a kind that are asked for."""
_LOOK_SECONDS = 0.02
_MEASURE_LOOKS = 50
"""Looks at the lake between two at the memory."""

AIMS = (
    Aim("taken in, times pyoxigraph's bulk load", ("ratio",), 2.0, least=True),
    Aim("bytes for a quad", ("bytes_per_quad", "compacted"), 30.0),
    Aim("share of files for a predicate", ("reads", "predicate", "share"), 0.2),
    Aim("share of files for a subject that comes all day", ("reads", "sensor", "share"), 0.05),
    Aim("share of files for a subject that comes once", ("reads", "observation", "share"), 0.05),
    Aim("share of files for an hour", ("reads", "hour", "share"), 0.1),
    Aim("until new events can be asked for", ("freshness_ms", "max"), 5_000.0, " ms"),
)


@dataclass(frozen=True)
class GatedLog:
    """A log that shows only its first entries until the gate, a file, is there: so that a query can be up and warm
    before the clock starts."""

    log: MeasuredLog
    first: int
    gate: Path

    def head(self) -> int:
        return self.log.head() if self.gate.exists() else min(self.first, self.log.head())

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of any method of a log
        return getattr(self.log, name)


@dataclass(frozen=True)
class StoreQuery:
    """The `store` query as it runs in the pipeline, up to the gate."""

    work: JobContext
    job: QueryJob
    gate: Path

    @cached_property
    def lake(self) -> Lake:
        return self.work.ports.open_lake()

    def drain(self) -> Report:
        """Open the gate, and wait until the lake has the whole log."""
        before, spent = self.lake.files(), self.work.costs.store.value
        self.gate.touch()
        began, head = time.perf_counter(), self.work.ports.open_log().head()
        memory = self.wait_stored(head)
        seconds, after = time.perf_counter() - began, self.lake.files()
        return {
            "quads_per_s": round((head - before.position) * QUADS / seconds),
            "seconds": round(seconds, 2),
            "batches": after.version - before.version,
            "writing_cpu_s": round(self.work.costs.store.value - spent, 2),
            "memory_mb": round(memory / 1e6),
        }

    def measure_freshness(self, publication: Publication) -> float:
        """Return the seconds from just before events are published until they can be asked for."""
        began = time.perf_counter()
        ((*_, last),) = self.work.ports.open_log().append([publication])
        self.wait_stored(last)
        return time.perf_counter() - began

    def wait_stored(self, position: int) -> int:
        """Wait until the lake is complete up to a position. Return the most memory that Spark's processes had."""
        memory, looks = 0, 0
        while self.lake.files().position < position:
            self.job.check()
            looks += 1
            memory = memory if looks % _MEASURE_LOOKS else max(memory, measure_children())
            time.sleep(_LOOK_SECONDS)
        return memory


def _open_gated(open_log: Callable[[], MeasuredLog], first: int, gate: Path) -> MeasuredLog:
    return cast(MeasuredLog, GatedLog(open_log(), first, gate))


@contextmanager
def start_store_query(settings: Settings, first: int) -> Iterator[StoreQuery]:
    """Start Spark and the query as the pipeline does, and wait until the first entries are stored."""
    with start_spark("history", settings) as spark:
        ports, gate = pipeline_ports(settings), settings.data.absolute() / "gate"
        gated = replace(ports, open_log=partial(_open_gated, ports.open_log, first, gate))
        work = JobContext(spark, gated, settings.checkpoints, CpuCosts.create(spark.sparkContext))
        started = StoreQuery(work, start_store(work, settings.store_interval), gate)
        started.wait_stored(first)
        yield started


def run(quads: int, say: Say) -> Report:
    day, machine = Day(quads), Machine()
    with make_directory() as path:
        settings = Settings(data=path / "data")
        _fill_log(day, settings.log, path / "quads.nq", say)
        say("starting Spark and the store query")
        with start_store_query(settings, FIRST_EVENTS) as running:
            say(f"pyoxigraph loads {day.quads:,} quads")
            theirs = _load_oxigraph(day, path / "quads.nq", path / "rival")
            report = _measure(day, running, settings.lake, say)
    report["oxigraph"] = theirs
    report["ratio"] = round(report["ingest"]["quads_per_s"] / theirs["quads_per_s"], 2)
    described = machine.describe(oxigraph=ox.__version__)
    return {"machine": described, "quads": day.quads, "events": day.events, **report}


def _fill_log(day: Day, path: Path, file: Path, say: Say) -> None:
    """Write the log for the store query, and a file of N-Quads for pyoxigraph."""
    step = max(1, day.events // BODY_EVENTS // 4)
    with closing(SqliteLog(path, SystemClock())) as log, file.open("wb") as quads:
        for number, publication in enumerate(day.make_publications(BODY_EVENTS)):
            if number % step == 0:
                say(f"filling the log, {100 * number * BODY_EVENTS // day.events} %")
            log.append([publication])
            quads.write(write_nquads(publication))


def _load_oxigraph(day: Day, quads: Path, directory: Path) -> Report:
    """Load a file of N-Quads into a new store, until all of it is on the disk."""
    began = time.perf_counter()
    store = ox.Store(directory)
    store.bulk_load(path=str(quads), format=ox.RdfFormat.N_QUADS)
    store.flush()
    seconds = time.perf_counter() - began
    size = round(measure_directory(directory) / day.quads, 2)
    return {"quads_per_s": round(day.quads / seconds), "seconds": round(seconds, 2), "bytes_per_quad": size}


def _measure(day: Day, running: StoreQuery, table: Path, say: Say) -> Report:
    def bytes_per_quad() -> float:
        return round((running.lake.files().size + measure_directory(table / "_delta_log")) / day.quads, 2)

    say("the store query takes them in")
    report: Report = {"ingest": running.drain(), "bytes_per_quad": {"fresh": bytes_per_quad()}}
    report["files"] = {"fresh": len(running.lake.files().files)}
    say("how soon new events can be asked for")
    news = (Publication(STREAMS[0], [day.make_event(day.events + number)]) for number in range(FRESH_TIMES))
    delays = [running.measure_freshness(each) * 1_000 for each in news]
    running.job.stop()
    compaction, balancing = _maintain(running.work.spark, table, say)
    report["bytes_per_quad"]["compacted"] = bytes_per_quad()
    files = running.lake.files().files
    report["files"] |= {"compacted": len(files), "zones": len({each.zone for each in files})}
    say("how much of it queries read")
    return {
        **report,
        "compaction_s": round(compaction, 2),
        "balancing_s": round(balancing, 2),
        "reads": _measure_reads(day, table),
        "freshness_ms": {"median": round(median(delays)), "max": round(max(delays))},
    }


def _maintain(spark: SparkSession, table: Path, say: Say) -> tuple[float, float]:
    """Sort fresh files into zones and balance those, until nothing is left to do. Return seconds of both."""

    def show_progress(progress: MaintenanceProgress) -> None:
        if not progress.done:
            say(f"{progress.work}, {progress.of:,} quads")

    tasks = spark.sparkContext.defaultParallelism
    house = replace(open_maintenance(table), run=partial(run_tasks, spark), tasks=tasks, report=show_progress)
    marks = [time.perf_counter()]
    for work in (compact, partial(rebalance, settings=BalanceSettings()), compact):
        work(house)
        marks.append(time.perf_counter())
    return marks[1] - marks[0] + marks[3] - marks[2], marks[2] - marks[1]


@dataclass(frozen=True)
class QueryReads:
    """Files that a query opened, and those of the table, rows and milliseconds, as the engine explains it."""

    files: int
    of: int
    rows: int
    milliseconds: float


def measure_query(history: HistoryExecutor, text: str) -> QueryReads:
    """Run a query, and let the engine explain it."""
    request = HistoryRequest(text, explain="json")
    with history.start_deadline(request) as deadline:
        explain: Mapping[str, Any] = orjson.loads(b"".join(history.answer(request, deadline).chunks))
    return QueryReads(explain["files"]["read"], explain["files"]["of"], explain["rows"], explain["run_ms"])


def _measure_reads(day: Day, table: Path) -> Report:
    """Return by kind of query the means over its constants, and the most files that were read for one."""
    found = {}
    with closing(HistoryExecutor(DeltaLake(table), DuckDbEngine(table))) as history:
        for name, texts in _write_queries(day).items():
            reads = [measure_query(history, text) for text in texts]
            most = max(reads, key=lambda each: each.files)
            found[name] = {
                "share": round(mean(each.files for each in reads) / most.of, 4),
                "files": round(mean(each.files for each in reads), 1),
                "most": most.files,
                "of": most.of,
                "rows": round(mean(each.rows for each in reads)),
                "ms": round(mean(each.milliseconds for each in reads), 1),
            }
    return found


def _write_queries(day: Day) -> dict[str, Sequence[str]]:
    """Return queries with a constant predicate, a constant subject of each kind, and an hour."""

    def spread(count: int) -> list[int]:
        return [(2 * number + 1) * count // (2 * CONSTANTS) for number in range(CONSTANTS)]

    hours = [(write_time(timedelta(hours=each)), write_time(timedelta(hours=each + 1))) for each in spread(HOURS)]
    return {
        "predicate": [f"SELECT * {{ ?s {each} ?o }}" for each in PREDICATES],
        "sensor": [f"SELECT * {{ {day.sensor(each)} ?p ?o }}" for each in spread(day.sensors)],
        "observation": [f"SELECT * {{ {day.observation(each)} ?p ?o }}" for each in spread(day.events)],
        "hour": [f"SELECT * {{ ?o {RESULT_TIME} ?t FILTER(?t >= {one} && ?t < {two}) }}" for one, two in hours],
    }


def draw(report: Mapping[str, Any]) -> str:
    """Draw a bar for each aim, which stands at the line; a bar ends at twice the aim."""
    left, top, width, step = 300, 52, 420, 22
    height = top + len(AIMS) * step + 24
    ours, theirs = report["ingest"]["quads_per_s"], report["oxigraph"]["quads_per_s"]
    bars = [
        Bar(
            aim.title,
            min(1.0, aim.read(report) / aim.bound / 2),
            BLUE if aim.is_met(report) else ORANGE,
            f"{aim.read(report):,g}{aim.unit}, {aim.describe()}",
        )
        for aim in AIMS
    ]
    parts = [
        *draw_titles(
            f"{report['quads']:,} quads of history, in aims", f"{ours:,} quads a second, pyoxigraph {theirs:,}"
        ),
        draw_line(left + width / 2, top - 6, left + width / 2, height - 18, GREY),
        draw_text(left + width / 2, height - 6, "aim", "middle", GREY),
        *draw_bars(bars, left, top, width, step),
    ]
    return draw_sheet(left + width + 150, height, parts)
