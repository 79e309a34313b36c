"""Resident tasks: Spark jobs that do not end. Matching is one in the main lane, and another in the slow lane.

A micro-batch costs about 100 ms, whatever it holds. A resident task waits for commits to the log instead, reads a
block, matches it and writes the outbox, all by itself:

    log ──signal──▶ task: read a block ──▶ match ──▶ write the outbox ──signal──▶ edges
                      ▲                                    │
                      └── starts at the head of its part ◀─┘

A job has one task, or several, each of which has a part of the lane: blocks of positions are dealt to them by number,
and edges read up to the position that all have reached. The tasks know nothing of each other, except that none goes far
ahead of the slowest.

No checkpoint is needed. Matching is a pure function of the events and of the registry at their positions, and the
outbox drops what is at or below the head of a part. So a task that Spark starts again, and even two at once, lose
nothing and double nothing. Each start of a job divides the lane anew, by which tasks of an earlier one are refused.
Tasks report to the driver by small files, since accumulators arrive only when a task ends.
"""

from __future__ import annotations

import logging
import time
from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from triplewire.config.heap import freeze_heap, freeze_survivors
from triplewire.config.status import Heartbeat, read_heartbeat, write_heartbeat
from triplewire.config.tracing import TRACED_EVENTS, Tracer, now_ns, parse_parents
from triplewire.model import MATCHED_COLUMNS, format_position, no_matches
from triplewire.model.clock import Backoff, Clock, SystemClock
from triplewire.model.errors import TriplewireError, Unavailable
from triplewire.spark.jobs.exchange import BLOCK_BYTES
from triplewire.spark.jobs.ports import JobPorts
from triplewire.spark.jobs.source import BLOCK_EVENTS, plan_batch
from triplewire.spark.jobs.workers import hide_pandas
from triplewire.storage.outbox import OutboxLane, OutboxPart
from triplewire.storage.registry.ontologies import BATCH_EVENTS
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.subscriptions import LANE, Lane, lane_to_value

LANE_SHARE: Final = 0.5
"""CPU time that the evaluator takes for one shape, as a share of the time, before the shape counts as expensive."""

LANE_EVENT_SECONDS: Final = 0.001
"""CPU time for one shape and event, on the average of a report, below which a shape is not expensive: ten times what a
hundred usual ones take together."""

LANE_REPORTS: Final = 3
"""Reports in a row in which a shape is expensive before it goes to the slow lane, where it stays."""

AHEAD_POSITIONS: Final = BATCH_EVENTS
"""Positions by which a task may be ahead of the slowest one of its job. The index keeps what ended so far back; a task
that is further behind would have it built anew, again and again."""

SMALL_BLOCK: Final = 250
"""Events of a block below which a task rests afterwards for as long as the block took. It takes some 2 ms, whatever it
holds, so that under load more events share one."""

REST_SECONDS: Final = 0.005
"""The longest such rest."""

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
    """Matches the events of a log into one part of a lane of the outbox. It begins at the head of the part."""

    def __init__(
        self,
        ports: JobPorts,
        part: OutboxPart,
        clock: Clock,
        tracer: Tracer | None = None,
        *,
        block_events: int = BLOCK_EVENTS,
        ahead: int = AHEAD_POSITIONS,
    ) -> None:
        """`ahead` is by how many positions it may be ahead of the slowest task. Raises Conflict if the lane was divided
        anew."""
        from triplewire.spark.jobs.match import open_matcher  # slow to import, and the driver does without

        self._log, self._outbox = ports.open_log(), ports.open_outbox("")
        self._matcher = open_matcher(ports, part.lane)
        self._part = part
        self._clock = clock
        self._tracer = tracer
        self._tracker = CostTracker()
        self._block_events = block_events
        self._ahead = ahead
        self._progress = self._outbox.progress(part)
        self._blocks = self._events = self._unsettled = 0
        self.last_events = 0
        """Events of the last block."""
        self._cpu = 0.0
        self._limits = Counter[str]()
        self._expensive: dict[str, float] = {}
        self._settled = clock.ticks()

    def step(self) -> bool:
        """Match what waits in the blocks of this part, up to a limit; return whether there was anything."""
        began, cpu, after = now_ns(), time.thread_time(), self._progress.head
        through = self._plan(after)
        if through <= after:
            return False
        entries = self._read(after, through)
        matches = no_matches()
        if entries.num_rows:
            matches = self._matcher.match(entries.select(MATCHED_COLUMNS))
        # Before the write: edges may deliver the matches before it returns.
        self._trace(entries, through, began)
        self._progress = self._outbox.write_part(self._part, after, through, matches)
        self._count(entries, matches, time.thread_time() - cpu)
        return True

    def report(self) -> dict[str, Any]:
        """Return the figures since the task began, with the shapes that were too expensive and their cost."""
        seconds, self._settled = self._clock.ticks() - self._settled, self._clock.ticks()
        self._expensive |= self._tracker.settle(self._matcher.spent(), self._unsettled, seconds)
        self._unsettled = 0
        return {
            "position": self._progress.head,
            "blocks": self._blocks,
            "events": self._events,
            "cpu": self._cpu,
            "limits": dict(self._limits),
            "expensive": self._expensive,
        }

    def _plan(self, after: int) -> int:
        """Return the position up to which to match next. Positions of other parts are among those up to there."""
        through = plan_batch(self._log, after, self._part.count * self._block_events, BLOCK_BYTES)
        if through > self._progress.lane_head + self._ahead:
            self._progress = self._outbox.progress(self._part)
        return min(through, self._progress.lane_head + self._ahead)

    def _read(self, after: int, through: int) -> pa.Table:
        blocks = [self._log.read(first, last, self._block_events) for first, last in self._part.ranges(after, through)]
        return blocks[0] if len(blocks) == 1 else pa.concat_tables(blocks)

    def _count(self, entries: pa.Table, matches: pa.Table, cpu: float) -> None:
        self._blocks += 1
        self.last_events = entries.num_rows
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
    """What the tasks of a resident job are told when they begin."""

    parts: Sequence[OutboxPart]
    """The part of each task."""
    interval: float
    """Seconds after which an idle task looks at the log although no signal came."""
    reports: Sequence[Path]
    """The report of each task."""


def _run_task(ports: JobPorts, options: TaskOptions, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run until the job is cancelled. Spark notices a lost worker, and a worker a lost JVM, by a row every second."""
    ((number,),) = [batch.column(0).to_pylist() for batch in batches if batch.num_rows]
    hide_pandas()
    clock, signals = SystemClock(), ports.open_signals()
    task = MatchTask(ports, options.parts[number], clock, ports.open_tracer())
    freeze_heap()
    freeze_survivors()
    reported = -REPORT_SECONDS
    while True:
        began = clock.ticks()
        busy = task.step()
        if clock.ticks() - reported >= REPORT_SECONDS:
            reported = clock.ticks()
            report = task.report()
            write_heartbeat(options.reports[number], clock, "ready", report)
            yield pa.record_batch([pa.array([report["position"]], pa.int64())], names=["position"])
        if not busy:
            signals.wait(options.interval)
        elif task.last_events < SMALL_BLOCK:
            time.sleep(min(clock.ticks() - began, REST_SECONDS))


@dataclass(frozen=True)
class ResidentOptions:
    """The options of a resident job."""

    lane: OutboxLane
    after: int = 0
    """The position at which a lane begins that has no head yet."""
    tasks: int = 1
    interval: float = 0.1
    """Seconds after which an idle task looks at the log although no signal came."""
    stalled: float = STALLED_SECONDS


class ResidentJob:
    """A job that does not end, in the driver: started again when it fails, and when one of its tasks stalls."""

    def __init__(self, spark: SparkSession, ports: JobPorts, options: ResidentOptions, clock: Clock) -> None:
        self.name = JOBS[options.lane]
        self.restarts = 0
        """How often it was started again."""
        self._spark = spark
        self._ports = ports
        self._options = options
        self._clock = clock
        self._registry = ports.open_registry()
        self._reports = [ports.reports / f"{self.name}-{number}.json" for number in range(options.tasks)]
        ports.reports.mkdir(parents=True, exist_ok=True)
        self._remove_reports()
        self._started = clock.now()
        self._cpu, self._limits = 0.0, Counter[str]()
        """Totals of tasks that have ended."""
        self._failures = 0
        self._failure: Exception | None = None
        self._stopping = Flag()
        self._thread = Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Start the job again if a task has stalled, and move shapes that tasks found too expensive. Raises Unavailable
        if the job failed too often."""
        if self._failures >= RESTARTS or not self._thread.is_alive():
            raise Unavailable(f"the {self.name} job ended: {self._failure}")
        reports = self._read_reports()
        alive = max(self._started, min(each.at for each in reports))
        if self._clock.now() - alive > self._options.stalled * 1_000_000:
            stalled = [number for number, each in enumerate(reports) if each.at <= alive]
            logger.error("tasks %s of the %s job made no progress; it is started again", stalled, self.name)
            self._started = self._clock.now()
            self._cancel()
        self._move_expensive(reports)

    def figures(self) -> dict[str, Any]:
        """Return the position and the totals of all tasks of the job, for the heartbeat of the pipeline."""
        details = [each.detail for each in self._read_reports()]
        positions = [each["position"] for each in details if each]
        totals = {name: sum(each.get(name, 0) for each in details) for name in ("blocks", "events", "cpu")}
        limits = sum((Counter(each.get("limits", {})) for each in details), self._limits)
        return {
            **totals,
            "position": min(positions, default=0),
            "cpu": self._cpu + totals["cpu"],
            "limits": dict(limits),
            "tasks": len(positions),
            "restarts": self.restarts,
        }

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
        context.setJobGroup(self.name, f"resident tasks of {self.name}", interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", self.name)
        while not self._stopping.is_set() and self._failures < RESTARTS:
            before = self._clock.now()
            try:
                self._run_tasks()
            except Exception as error:
                self._failure = error
            if self._stopping.is_set():
                return
            self._add_totals(before)
            logger.warning("the %s job is started again: %s", self.name, str(self._failure)[:500])
            self._started = self._clock.now()
            self._stopping.wait(_RESTART_PAUSE.seconds(self._failures))

    def _run_tasks(self) -> None:
        """Run the tasks until they are cancelled, or one of them fails. Those of an earlier run that are still there
        cannot write from here on."""
        options = self._options
        parts = self._ports.open_outbox("").divide(options.lane, options.tasks, options.after)
        function = partial(_run_task, self._ports, TaskOptions(parts, options.interval, self._reports))
        rows = self._spark.range(0, options.tasks, 1, options.tasks).mapInArrow(function, "position long")
        rows.write.format("noop").mode("overwrite").save()

    def _add_totals(self, before: int) -> None:
        """Add the last reports of tasks that began at a time. A job with a task that did not report has failed."""
        reports = self._read_reports()
        self._failures = 1 if all(each.at > before for each in reports) else self._failures + 1
        self.restarts += 1
        for each in reports:
            self._cpu += each.detail.get("cpu", 0.0)
            self._limits.update(each.detail.get("limits", {}))
        self._remove_reports()

    def _move_expensive(self, reports: Iterable[Heartbeat]) -> None:
        """Move shapes that tasks found too expensive. The driver does it, since there is one: a shape that two tasks
        move at the same time would have two positions, and matches in between would be lost."""
        try:
            move_to_slow_lane(self._registry, ChainMap(*(each.detail.get("expensive", {}) for each in reports)))
        except TriplewireError as error:
            logger.warning("expensive shapes were not moved to the slow lane yet: %s", error)

    def _read_reports(self) -> list[Heartbeat]:
        return [read_heartbeat(each) for each in self._reports]

    def _remove_reports(self) -> None:
        for each in self._reports:
            each.unlink(missing_ok=True)
