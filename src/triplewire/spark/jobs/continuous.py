"""The continuous job: a driver that runs each batch of continuous queries as a list of steps.

The batch planner decides before a batch, the state manager writes what was decided and keeps the state, the join stage
and the window stage run in the workers. A batch that is replayed goes by the same decisions and gives the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from triplewire.continuous.batch_planner import Backfill, BatchPlanner, ReorderRules
from triplewire.continuous.join_network.kernels import ADDRESSES
from triplewire.continuous.join_network.partition import BUCKETS
from triplewire.continuous.planner import NetworkPlanner
from triplewire.continuous.projection import construct_events
from triplewire.continuous.state import PARTIAL_ROWS, BatchContext
from triplewire.continuous.state_manager import StateManager
from triplewire.continuous.windows.partition import WindowFigures
from triplewire.continuous.windows.results import results_to_events, suspended_queries
from triplewire.kernels.arrays import Int64
from triplewire.matching.event_history import EventHistory
from triplewire.model import MATCHES, Event, LimitReached, no_matches
from triplewire.spark.jobs.exchange import pack_table
from triplewire.spark.jobs.join_stage import PAGE_ROUNDS, JoinReport, JoinTask, PredicateCounts, run_joins
from triplewire.spark.jobs.source import (
    Batching,
    Checkpoint,
    EventFrame,
    SourcePorts,
    frame_of_blocks,
    frame_of_ranges,
    split_positions,
    timed_log_source,
)
from triplewire.spark.jobs.stateful import StageLoad
from triplewire.spark.jobs.streaming import CONTINUOUS_JOB, JobContext, StreamingJob, start_job
from triplewire.spark.jobs.window_stage import WindowReport, WindowTask, rewrite_changelogs, run_windows
from triplewire.storage.log.ports import Log, Publication
from triplewire.storage.outbox import OutboxLane
from triplewire.storage.registry.erasure import pending_erasures
from triplewire.storage.registry.subscriptions import QUERY

CONTINUOUS_EVENTS: Final = 60_000
"""Events in one micro-batch of continuous queries. Most of a batch is fixed cost, so a backlog is read in large
batches; a worker needs some 300 bytes for each event."""

CONTINUOUS_TEXT_BYTES: Final = 16 * 1024 * 1024
"""Text of the events in one micro-batch of continuous queries; one event more may begin within it. Rows that follow
from it pass through the JVM, some five times as much, which has 640 MB for them."""

DISTINCT_ANSWERS: Final = 2_000_000
"""Answers of a continuous query with set semantics that are remembered, so that none is reported twice: some 200 MB.
A query with more is suspended."""


@dataclass(frozen=True)
class ContinuousOptions:
    """How continuous queries run: the directory of their state, the number of state partitions, whether rows are spread
    by their values, seconds between batches, and limits."""

    path: Path
    partitions: int
    spread: bool
    interval: float
    distinct_limit: int = DISTINCT_ANSWERS
    row_limit: int = PARTIAL_ROWS
    reorder: ReorderRules = field(default_factory=ReorderRules)


@dataclass(frozen=True)
class ContinuousBatch:
    """A batch of a run: its events, which begin after the position `after`."""

    run: str
    events: EventFrame
    context: BatchContext
    after: int


@dataclass(frozen=True)
class BatchOutcome:
    """The outcome of a batch: matches for the outbox, and events to publish, each with its stream."""

    matches: pa.Table
    events: Sequence[tuple[str, Event]]


@dataclass
class ContinuousFigures:
    """Sizes of all partitions as of their last report, and the rows that came to each address so far."""

    joins: dict[int, JoinReport] = field(default_factory=dict)
    addresses: Int64 = field(default_factory=lambda: np.zeros(ADDRESSES, np.int64))
    windows: dict[int, WindowFigures] = field(default_factory=dict)

    def add(self, report: JoinReport) -> None:
        self.joins[report.partition] = report
        self.addresses += report.addresses

    def summarize(self) -> dict[str, object]:
        """Return the figures for the heartbeat."""
        loads = np.bincount(np.arange(ADDRESSES) % BUCKETS, self.addresses, BUCKETS)
        sizes: list[JoinReport | WindowFigures] = [*self.joins.values(), *self.windows.values()]
        return {
            "state_rows": sum(each.rows for each in sizes),
            "state_bytes": sum(each.bytes for each in sizes),
            "late": sum(number for each in self.windows.values() for number in each.dropped.values()),
            "loads": [int(each) for each in loads],
            "addresses": int(np.count_nonzero(self.addresses)),
        }


class ContinuousDriver:
    """The driver of one run of the continuous job."""

    def __init__(self, job: JobContext, options: ContinuousOptions) -> None:
        self._job = job
        self._options = options
        self._state = StateManager(options.path)
        decisions = self._state.read_decisions(options.partitions, options.spread)
        self._state.write_decisions(decisions)
        self._planner = BatchPlanner(job.registry, decisions, options.reorder)
        self._figures = ContinuousFigures()
        self._join_load, self._window_load = StageLoad(job.costs.continuous), StageLoad(job.costs.continuous)

    def run_batch(self, batch: ContinuousBatch) -> BatchOutcome:
        """Run a batch. Its answers must be written before `finish_batch` is called."""
        self._plan(batch)
        state = self._open_generation(batch)
        matches, reports = self._join(batch, state)
        answers = self._drop_known(batch, matches)
        events = list(construct_events(answers, self._planner.network.constructing))
        reported = self._without_constructed(answers)
        notices = self._enforce_limits(batch, reports)
        events += self._run_windows(batch, state)
        return BatchOutcome(pa.concat_tables([reported, notices]), events)

    def finish_batch(self, batch: ContinuousBatch) -> dict[str, object]:
        """Drop the generations of state that the batch has replaced; return figures for the heartbeat."""
        self._state.generations.drop_others(batch.run, self._planner.decisions.rebuilt_at)
        queries = len(self._planner.network.queries)
        return {"position": batch.context.position, "queries": queries, **self._figures.summarize()}

    def _plan(self, batch: ContinuousBatch) -> None:
        if self._planner.read_registry(batch.context.position):
            self._state.write_decisions(self._planner.decisions)
        self._planner.reorder(batch.context, batch.after)

    def _open_generation(self, batch: ContinuousBatch) -> Path:
        """Return the directory of the state. A batch that rebuilds it begins without join partitions, and with window
        partitions that have no erased data."""
        generations, rebuilt_at = self._state.generations, self._planner.decisions.rebuilt_at
        state = generations.directory(batch.run, rebuilt_at)
        if self._planner.rebuilds_after(batch.after):
            generations.clear_joins(batch.run, rebuilt_at)
            previous = generations.previous(batch.run, rebuilt_at)
            if previous is not None and self._planner.network.windows:
                rewrite_changelogs(previous, state, batch.context.batch, pending_erasures(self._job.registry))
        return state

    def _join(self, batch: ContinuousBatch, state: Path) -> tuple[pa.Table, list[JoinReport]]:
        """Join the backfills of a batch, then its events."""
        tables, reports, pages = [no_matches()], list[JoinReport](), count(1)
        for backfill in self._planner.plan_backfills(batch.context, batch.after):
            for matches, found in self._backfill(batch, state, backfill, pages):
                tables += [matches] if backfill.reported else []
                reports += found
        if self._planner.network.has_unbounded:
            task = self._join_task(batch, state, self._planner.network)
            with self._join_load.place(batch.events) as events:
                matches, found = self._run_joins(events, task)
            tables.append(matches)
            reports += found
        return self._planner.date_matches(pa.concat_tables(tables), batch.context, batch.after), reports

    def _backfill(
        self, batch: ContinuousBatch, state: Path, backfill: Backfill, pages: Iterator[int]
    ) -> Iterator[tuple[pa.Table, list[JoinReport]]]:
        """Join the history for some queries, page by page, with page numbers that are unique in the batch. Matches have
        the position of the origin, which is in this batch."""
        network = self._planner.network.restrict_to(backfill.queries)
        task = replace(self._join_task(batch, state, network), origin=backfill.origin)
        history = EventHistory(self._job.ports.open_log(), self._job.ports.open_archive())
        after = backfill.begins - 1
        while after < batch.after:
            page = history.page(after, batch.after, CONTINUOUS_EVENTS)
            number, after = next(pages), page.position
            blocks = list(pack_table(page.entries))
            if blocks:
                events = frame_of_blocks(self._job.spark, blocks)
                matches, reports = self._run_joins(events, replace(task, base=number * PAGE_ROUNDS))
                positions = pa.array(np.full(matches.num_rows, backfill.origin, np.int64))
                yield matches.set_column(0, MATCHES.field("position"), positions), reports

    def _join_task(self, batch: ContinuousBatch, state: Path, network: NetworkPlanner) -> JoinTask:
        decisions, context = self._planner.decisions, batch.context
        program = network.build_program(spread=decisions.spread)
        path = self._state.write_program(program, decisions, context.position)
        return JoinTask(state, decisions.partitions, context, path, program.depth, self._options.row_limit)

    def _run_joins(self, events: EventFrame, task: JoinTask) -> tuple[pa.Table, list[JoinReport]]:
        matches, reports = run_joins(events, task, self._job.costs)
        for report in reports:
            if isinstance(report, PredicateCounts):
                self._planner.decisions.rates.count(report.counts)
        sizes = [each for each in reports if isinstance(each, JoinReport)]
        for each in sizes:
            self._figures.add(each)
        return matches, sizes

    def _drop_known(self, batch: ContinuousBatch, matches: pa.Table) -> pa.Table:
        """Drop the answers of queries with set semantics that were reported before."""
        distinct = {group: query.after for group, query in self._planner.network.distinct.items()}
        return self._state.distinct_state(batch.run).drop_known(batch.context.batch, matches, distinct)

    def _without_constructed(self, answers: pa.Table) -> pa.Table:
        groups = list(self._planner.network.constructing)
        return answers.filter(pa.array(~np.isin(answers["group"].to_numpy(), groups))) if groups else answers

    def _enforce_limits(self, batch: ContinuousBatch, reports: Sequence[JoinReport]) -> pa.Table:
        """Spread heavy keys, and suspend queries with too much state; return the notices for their subscribers."""
        self._planner.network.spread_keys(key for each in reports for key in each.heavy)
        overfull = self._planner.find_overfull(
            self._state.distinct_state(batch.run).groups_above(self._options.distinct_limit),
            {node for each in reports for node in each.overfull},
        )
        position = batch.context.position
        self._planner.suspend(overfull, position)
        rows = [
            {"position": position, "subscription": each.since, "limit": LimitReached.STATE.value} for each in overfull
        ]
        return pa.Table.from_pylist(rows, schema=MATCHES)

    def _run_windows(self, batch: ContinuousBatch, state: Path) -> Sequence[tuple[str, Event]]:
        """Run the windows that close in a batch; return their results as events, each with its stream."""
        network, context = self._planner.network, batch.context
        if not network.windows:
            self._state.write_due(None)
            return []
        queries = self._state.write_queries(list(network.windows.values()), context.position)
        static_data = self._job.ports.open_static_data
        task = WindowTask(state, self._planner.decisions.partitions, context, queries, static_data)
        with self._window_load.place(batch.events) as events:
            results, reports = run_windows(events, task, self._job.costs)
        sizes = [each for each in reports if isinstance(each, WindowReport)]
        self._figures.windows.update((each.partition, each.figures) for each in sizes)
        self._state.write_due(min((each.due for each in sizes if each.due is not None), default=None))
        suspended = [network.queries[id] for id in suspended_queries(results) if id in network.queries]
        self._planner.suspend(suspended, context.position)
        return results_to_events(results)


def start_continuous(job: JobContext, options: ContinuousOptions) -> StreamingQuery:
    """Start the job that runs every event through every continuous query, of which there must be one."""
    (first_query,) = job.registry.list(QUERY, limit=1)
    checkpoint = Checkpoint(job.checkpoints / CONTINUOUS_JOB)
    outbox = cache(job.ports.open_outbox)
    first = outbox("").head(OutboxLane.CONTINUOUS) or first_query.position - 1
    batching = Batching(first, CONTINUOUS_EVENTS, CONTINUOUS_TEXT_BYTES)
    driver = ContinuousDriver(job, options)

    def deliver(nothing: DataFrame, number: int) -> None:
        context = BatchContext(number, checkpoint.position(number), checkpoint.time(number))
        after = checkpoint.position(number - 1) if number else first
        ranges = split_positions(after, context.position, job.cores)
        # The session of the batch plans a job as a whole; that of the pipeline would plan each exchange for itself.
        events = frame_of_ranges(nothing.sparkSession, job.ports.open_log, ranges)
        batch = ContinuousBatch(checkpoint.id, events, context, after)
        outcome = driver.run_batch(batch)
        publish_answers(job.log, outcome.events)
        outbox(checkpoint.id).write(number, context.position, outcome.matches, OutboxLane.CONTINUOUS)
        job.continuous.update(driver.finish_batch(batch))

    source = SourcePorts(job.ports.open_log, job.ports.open_signals, options.path / "due", options.interval)
    return start_job(job, StreamingJob(CONTINUOUS_JOB, checkpoint, batching), deliver, timed_log_source(source))


def publish_answers(log: Log, events: Sequence[tuple[str, Event]]) -> None:
    """Append answers to their streams. Answers of a replayed batch have the same ids, and are not stored twice."""
    ordered = sorted(events, key=itemgetter(0))
    publications = [
        Publication(stream, [event for _, event in answers], given=frozenset(event.id for _, event in answers))
        for stream, answers in ((stream, list(group)) for stream, group in groupby(ordered, key=itemgetter(0)))
    ]
    if publications:
        log.append(publications)
