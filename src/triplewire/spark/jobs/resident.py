"""Resident tasks: Spark jobs that do not end. Matching is one in the main lane, and another in the slow lane.

A micro-batch costs about 100 ms, whatever it holds. A resident task waits for commits to the log instead, reads a
block, matches it and writes the outbox, all by itself:

    log ──signal──▶ task: read a block ──▶ match ──▶ write the outbox ──signal──▶ edges
                      ▲                                    │
                      └── starts at the head of its lane ◀─┘

No checkpoint is needed. Matching is a pure function of the events and of the registry at their positions, and the
outbox drops what is at or below the head of a lane. So a task that Spark starts again, and even two at once, lose
nothing and double nothing. Tasks report to the driver by a small file, since accumulators arrive only when a task ends.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from triplewire.config.status import Heartbeat, read_heartbeat, write_heartbeat
from triplewire.config.tracing import TRACED_EVENTS, Tracer, now_ns, parse_parents
from triplewire.model import MATCHED_COLUMNS, MATCHES, format_position
from triplewire.model.clock import Backoff, Clock, SystemClock
from triplewire.model.errors import Unavailable
from triplewire.spark.jobs.exchange import BLOCK_BYTES
from triplewire.spark.jobs.ports import JobPorts
from triplewire.spark.jobs.source import BLOCK_EVENTS, plan_batch
from triplewire.spark.jobs.workers import freeze_heap, hide_pandas
from triplewire.storage.outbox import OutboxLane
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.subscriptions import LANE, Lane, lane_to_value

LANE_SHARE: Final = 0.5
"""CPU time that the evaluator takes for one shape, as a share of the time, before the shape counts as expensive."""

LANE_EVENT_SECONDS: Final = 0.001
"""CPU time for one shape and event, on the average of a report, below which a shape is not expensive: ten times what a
hundred usual ones take together."""

LANE_REPORTS: Final = 3
"""Reports in a row in which a shape is expensive before it goes to the slow lane, where it stays."""

REPORT_SECONDS: Final = 1.0
"""Time between two reports of a task."""

STALLED_SECONDS: Final = 60.0
"""Age of the last report from which on a task counts as stalled. Its job is cancelled and started again."""

RESTARTS: Final = 8
"""Failures of a job in a row, without a report in between, after which the pipeline gives up."""

JOBS = {OutboxLane.FAST: "match", OutboxLane.SLOW: "match-slow"}
"""The name of the job of each lane."""

_RESTART_PAUSE = Backoff(0.1, 5.0)

logger = logging.getLogger(__name__)


@dataclass
class CostTracker:
    """The CPU time of shapes. It is lost with a task: an expensive shape soon is again."""

    _over: dict[str, int] = field(default_factory=dict)
    """The number of reports in a row in which a shape was too expensive."""

    def settle(self, taken: Mapping[str, float], events: int, seconds: float = REPORT_SECONDS) -> dict[str, float]:
        """Add the CPU seconds that shapes took for some events within some seconds. Return the shapes to move to the
        slow lane, with their seconds for each event."""
        least = max(LANE_SHARE * seconds, events * LANE_EVENT_SECONDS)
        self._over = {shape: self._over.get(shape, 0) + 1 for shape, each in taken.items() if each >= least}
        return {shape: taken[shape] / max(1, events) for shape, count in self._over.items() if count == LANE_REPORTS}


def move_to_slow_lane(registry: Registry, expensive: Mapping[str, float]) -> None:
    """Move shapes to the slow lane, with their cost for each event. Shapes that are there already stay as they are."""
    moving = [Lane(shape, cost) for shape, cost in expensive.items() if registry.get(LANE, shape) is None]
    if moving:
        logger.warning("shapes moved to the slow lane, because they are too expensive: %s", moving)
        registry.put([(LANE, each.shape, lane_to_value(each)) for each in moving])


class MatchTask:
    """Matches the events of a log, block by block, into one lane of the outbox. It begins at the head of the lane."""

    def __init__(
        self,
        ports: JobPorts,
        lane: OutboxLane,
        after: int,
        clock: Clock,
        tracer: Tracer | None = None,
        *,
        block_events: int = BLOCK_EVENTS,
    ) -> None:
        """`after` is where a lane begins that has no head yet."""
        from triplewire.spark.jobs.match import open_matcher  # slow to import, and the driver does without

        self._log, self._registry, self._outbox = ports.open_log(), ports.open_registry(), ports.open_outbox(lane)
        self._matcher = open_matcher(ports, lane)
        self._lane = lane
        self._clock = clock
        self._tracer = tracer
        self._tracker = CostTracker()
        self._block_events = block_events
        self._position = self._outbox.head(lane) or after
        self._blocks = self._events = self._unsettled = 0
        self._cpu = 0.0
        self._limits = Counter[str]()
        self._settled = clock.ticks()

    def step(self) -> bool:
        """Match the next block; return whether there was one. As much as waits is one block, up to a limit."""
        began, cpu = now_ns(), time.thread_time()
        through = plan_batch(self._log, self._position, self._block_events, BLOCK_BYTES)
        if through <= self._position:
            return False
        entries = self._log.read(self._position, through, self._block_events)
        matches = MATCHES.empty_table()
        if entries.num_rows:
            matches = self._matcher.match(entries.select(MATCHED_COLUMNS))
        # Before the write: edges may deliver the matches before it returns.
        self._trace(entries, through, began)
        # The end of a block is its number: a block that another task has written is not written again.
        self._outbox.write(through, through, matches, self._lane)
        self._count(entries, matches, time.thread_time() - cpu)
        self._position = through
        return True

    def report(self) -> dict[str, Any]:
        """Return the figures since the task began. Shapes that have become too expensive leave the main lane."""
        seconds, self._settled = self._clock.ticks() - self._settled, self._clock.ticks()
        expensive = self._tracker.settle(self._matcher.spent(), self._unsettled, seconds)
        move_to_slow_lane(self._registry, expensive)
        self._unsettled = 0
        return {
            "position": self._position,
            "blocks": self._blocks,
            "events": self._events,
            "cpu": self._cpu,
            "limits": dict(self._limits),
        }

    def _count(self, entries: pa.Table, matches: pa.Table, cpu: float) -> None:
        self._blocks += 1
        self._events += entries.num_rows
        self._unsettled += entries.num_rows
        self._cpu += cpu
        if matches["limit"].null_count < matches.num_rows:
            self._limits.update(matches["limit"].drop_null().to_pylist())

    def _trace(self, entries: pa.Table, through: int, began: int) -> None:
        if self._tracer is None or not entries.num_rows:
            return
        parents = parse_parents(entries["extensions"].to_pylist(), TRACED_EVENTS)
        if parents:
            attributes: dict[str, str | int] = {
                "triplewire.events": entries.num_rows,
                "triplewire.position": format_position(through),
            }
            self._tracer.batch("match", parents, began, attributes)


@dataclass(frozen=True)
class TaskOptions:
    """What a task of a resident job is told when it begins."""

    lane: OutboxLane
    after: int
    interval: float
    """Seconds after which an idle task looks at the log although no signal came."""
    report: Path


def _run_task(ports: JobPorts, options: TaskOptions, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run until the job is cancelled. Spark notices a lost worker, and a worker a lost JVM, by a row every second."""
    for _ in batches:
        pass
    hide_pandas()
    clock, signals = SystemClock(), ports.open_signals()
    task = MatchTask(ports, options.lane, options.after, clock, ports.open_tracer())
    freeze_heap()
    reported = -REPORT_SECONDS
    while True:
        busy = task.step()
        if clock.ticks() - reported >= REPORT_SECONDS:
            reported = clock.ticks()
            report = task.report()
            write_heartbeat(options.report, clock, "ready", report)
            yield pa.record_batch([pa.array([report["position"]], pa.int64())], names=["position"])
        if not busy:
            signals.wait(options.interval)


class ResidentJob:
    """A job that does not end, in the driver: started again when it fails, and when it stalls."""

    def __init__(
        self,
        spark: SparkSession,
        ports: JobPorts,
        lane: OutboxLane,
        after: int,
        interval: float,
        clock: Clock,
        *,
        stalled: float = STALLED_SECONDS,
    ) -> None:
        self.name = JOBS[lane]
        self.restarts = 0
        """How often it was started again."""
        self._spark = spark
        self._clock = clock
        self._stalled = int(stalled * 1_000_000)
        self._report = ports.reports / f"{self.name}.json"
        self._report.parent.mkdir(parents=True, exist_ok=True)
        self._report.unlink(missing_ok=True)
        self._started = clock.now()
        self._cpu, self._limits = 0.0, Counter[str]()
        """Totals of tasks that have ended."""
        self._failures = 0
        self._failure: Exception | None = None
        self._stopping = Flag()
        self._function = partial(_run_task, ports, TaskOptions(lane, after, interval, self._report))
        self._thread = Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Start the job again if its task has stalled. Raises Unavailable if it failed too often."""
        if self._failures >= RESTARTS or not self._thread.is_alive():
            raise Unavailable(f"the {self.name} job ended: {self._failure}")
        alive = max(self._started, self.last_report().at)
        if self._clock.now() - alive > self._stalled:
            logger.error(
                "the %s job has made no progress for %.0f s and is started again", self.name, self._stalled / 1e6
            )
            self._started = self._clock.now()
            self._cancel()

    def last_report(self) -> Heartbeat:
        return read_heartbeat(self._report)

    def figures(self) -> dict[str, Any]:
        """Return the position and the totals of all tasks of the job, for the heartbeat of the pipeline."""
        last = self.last_report().detail
        limits = self._limits + Counter(last.get("limits", {}))
        return {**last, "limits": dict(limits), "cpu": self._cpu + last.get("cpu", 0.0), "restarts": self.restarts}

    def stop(self) -> None:
        """Cancel the job, and wait until its thread has ended."""
        self._stopping.set()
        while self._thread.is_alive():
            self._cancel()
            self._thread.join(0.1)

    def _cancel(self) -> None:
        self._spark.sparkContext.cancelJobGroup(self.name)

    def _run(self) -> None:
        context = self._spark.sparkContext
        context.setJobGroup(self.name, f"resident task of {self.name}", interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", self.name)
        while not self._stopping.is_set() and self._failures < RESTARTS:
            before = self._clock.now()
            try:
                rows = self._spark.range(0, 1, 1, 1).mapInArrow(self._function, "position long")
                rows.write.format("noop").mode("overwrite").save()
            except Exception as error:
                self._failure = error
            if self._stopping.is_set():
                return
            last = self.last_report()
            self._failures = 1 if last.at > before else self._failures + 1
            self.restarts += 1
            self._cpu += last.detail.get("cpu", 0.0)
            self._limits.update(last.detail.get("limits", {}))
            self._report.unlink(missing_ok=True)
            logger.warning("the %s job is started again: %s", self.name, str(self._failure)[:500])
            self._started = self._clock.now()
            self._stopping.wait(_RESTART_PAUSE.seconds(self._failures))
