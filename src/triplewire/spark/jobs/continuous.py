"""The continuous job: its driver plans each batch, runs the join and window stages, and publishes answers.

Decisions that a batch goes by (order of patterns, heavy keys, number of partitions, rebuild position) are written
before anything is done by them, so that a replayed batch goes by the same.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from triplewire.config.files import replace_file
from triplewire.continuous.join_network.join_order import ArrivalRates
from triplewire.continuous.join_network.kernels import ADDRESSES
from triplewire.continuous.join_network.partition import BUCKETS
from triplewire.continuous.planner import Backfill, NetworkPlanner, NetworkProgram, plan_backfills
from triplewire.continuous.projection import construct_events
from triplewire.continuous.state import BatchContext, DistinctState, StateChangelog, StateGenerations
from triplewire.continuous.structures import STRUCTURE
from triplewire.continuous.windows.partition import WindowFigures
from triplewire.continuous.windows.results import results_to_events, suspended_queries
from triplewire.kernels.compiler import Int64
from triplewire.matching.event_history import EventHistory
from triplewire.model import MATCHES, Event, LimitReached
from triplewire.model.subscriptions import ContinuousQuery, QueryState, query_to_value
from triplewire.spark.jobs import window_stage
from triplewire.spark.jobs.exchange import pack_table
from triplewire.spark.jobs.join_stage import JoinReport, JoinTask, PredicateCounts, collect_joins, run_join_rounds
from triplewire.spark.jobs.source import NEVER, Batching, Checkpoint, timed_log_source
from triplewire.spark.jobs.streaming import JobContext, StreamingJob, start_job
from triplewire.storage.log.ports import Log, Publication
from triplewire.storage.outbox import OutboxLane
from triplewire.storage.registry.erasure import pending_erasures
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import QUERY, newest_renewal

ONGOING_EVENTS: Final = 60_000
"""Events in one micro-batch of continuous queries. Most of a batch is fixed cost, so that a backlog is taken in large
bites; a worker needs some 300 bytes for each."""

ONCE_ANSWERS: Final = 2_000_000
"""Answers of a continuous query with set semantics that are remembered, so that none is told twice: some 200 MB. One
that has more is suspended."""

REORDER_TIMES: Final = 8
"""How many times as often triples must come that begin a chain as those of a better one, before the chain is put in
another order: to do so takes the past in again."""

REORDER_COUNTED: Final = 10_000
"""Triples that must have been counted before an order is decided again."""

REORDER_POSITIONS: Final = 500_000
"""Positions of the past that are taken in again at most when a chain is put in another order: some ten seconds."""

ONGOING_TEXT_BYTES: Final = 16 * 1024 * 1024
"""Text of the events in one micro-batch of continuous queries; one event more may begin within it. What follows from it
passes through the JVM, some five times as much, which has 640 MB for such things."""


# Figures of continuous queries: what stations and places of windows said of themselves.


@dataclass
class ContinuousFigures:
    """What stations said: the newest of how much they have, and the sum of what came to them."""

    rows: dict[int, int] = field(default_factory=dict)
    bytes: dict[int, int] = field(default_factory=dict)
    addresses: Int64 = field(default_factory=lambda: np.zeros(ADDRESSES, np.int64))
    crowded: set[int] = field(default_factory=set)
    heavy: set[int] = field(default_factory=set)
    windows: dict[int, WindowFigures] = field(default_factory=dict)

    def take(self, report: JoinReport) -> None:
        self.rows[report.station], self.bytes[report.station] = report.rows, report.bytes
        self.addresses += report.addresses
        self.crowded.update(report.crowded)
        self.heavy.update(report.heavy)

    def told(self) -> dict[str, object]:
        loads = np.bincount(np.arange(ADDRESSES) % BUCKETS, self.addresses, BUCKETS)
        return {
            "state_rows": sum(self.rows.values()) + sum(each.rows for each in self.windows.values()),
            "state_bytes": sum(self.bytes.values()) + sum(each.bytes for each in self.windows.values()),
            "late": sum(count for each in self.windows.values() for count in each.dropped.values()),
            "loads": [int(each) for each in loads],
            "addresses": int(np.count_nonzero(self.addresses)),
        }


# Papers: small files that the driver writes and others read.


def keep_newest(path: Path, count: int) -> None:
    """Drop all files of a directory but the last that were written."""
    files = [each for each in path.iterdir() if not each.name.startswith(".")]
    for each in sorted(files, key=lambda each: each.stat().st_mtime_ns)[:-count]:
        each.unlink(missing_ok=True)


logger = logging.getLogger(__name__)

KEPT_PROGRAMS = 4
"""Files with programs that stay: those of the batch at hand, and of one that may be done again."""

REORDER_BATCHES = 32
"""Batches from one look at the order of patterns to the next."""

PAGE_ROUNDS = 1_000
"""Rounds of one page of the past, at most: more than a chain has patterns."""


@dataclass(frozen=True)
class ContinuousOptions:
    """How continuous queries run: where their state is, how many stations there are, and whether rows are spread by
    values; and how often it is looked for events."""

    path: Path
    stations: int
    spread: bool
    interval: float

    @property
    def strategy(self) -> str:
        return "csbv" if self.spread else "cqc"


@dataclass(frozen=True)
class BatchOutcome:
    """What a batch came to: matches for the outbox, and events to publish, each with its stream."""

    matches: pa.Table
    events: Sequence[tuple[str, Event]]


class ContinuousDriver:
    """Belongs to one run of the query."""

    def __init__(self, work: JobContext, course: ContinuousOptions) -> None:
        self._work = work
        self._generations = StateGenerations(course.path / "state")
        self._decisions = course.path / "decisions.json"
        value = json.loads(self._decisions.read_text()) if self._decisions.exists() else {}
        self._course = _apply_decisions(course, value)
        self._learner = NetworkPlanner(ArrivalRates.from_value(value))
        self._made: int = value.get("made", 0)
        """The position at which all that is kept was made anew; 0 where it never was."""
        self._figures = ContinuousFigures()
        self._newest: tuple[NetworkProgram, Path] | None = None
        self._programs = 0
        self._memory: DistinctState | None = None
        self._watching: tuple[list[ContinuousQuery], Path] | None = None
        self._due: int | None = None
        self._write_down()

    def joins(self, run: str, entries: DataFrame, turn: BatchContext, start: int) -> BatchOutcome:
        """What unbounded queries answer in a batch, which begins after a position."""
        self._learn(turn.upto)
        self._reorder(turn, start)
        state = self._generation(run, start)
        found, pages = [MATCHES.empty_table()], count(1)
        for past in plan_backfills(self._learner, start, turn.upto, anew=start < self._made):
            found += self._recalled(state, past, turn, start, pages)
        if self._learner.unbounded:
            found.append(self._answered(entries, self._task(state, self._learner, turn)))
        self._memory = self._memory or DistinctState(StateChangelog(self._generations.told(run)))
        matches = self._since_registered(pa.concat_tables(found), turn, start)
        return self._outcome(matches.sort_by("position"), turn, self._memory)

    def forget(self, run: str) -> None:
        """What was kept before it was made anew, once the answers of the batch in which that was are written."""
        self._generations.drop_others(run, self._made)

    def _generation(self, run: str, start: int) -> Path:
        """Where what is kept lies. In the batch in which it is made anew it begins with nothing."""
        if start < self._made:
            self._generations.begin(run, self._made)
        return self._generations.of(run, self._made)

    def _since_registered(self, matches: pa.Table, turn: BatchContext, start: int) -> pa.Table:
        """Nothing is told to who looks back at a position before that of its registration."""
        positions, groups = matches["position"].to_numpy().copy(), matches["group"].to_numpy()
        for query in self._learner.backward.values():
            if start < query.since <= turn.upto:
                positions[groups == query.group] = np.maximum(positions[groups == query.group], query.since)
        return matches.set_column(0, MATCHES.field("position"), pa.array(positions))

    def windows(self, run: str, entries: DataFrame, turn: BatchContext, start: int) -> Sequence[tuple[str, Event]]:
        """What windows tell that close in a batch, which begins after a position, as events to publish, each with its
        stream."""
        if not self._learner.windows:
            self._leave_word(None)
            return []
        state = self._generations.of(run, self._made)
        before = self._generations.newest_before(run, self._made) if start < self._made else None
        if before is not None:
            window_stage.rewrite_changelogs(before, state, turn.batch, pending_erasures(self._work.registry))
        task = window_stage.WindowTask(
            self._watched(turn), state, self._course.stations, turn, self._work.ports.open_background
        )
        results, reports = window_stage.collect_windows(window_stage.run_windows(entries, task, self._work.costs), task)
        self._figures.windows.update((each.place, each.figures) for each in reports)
        self._leave_word(min((each.due for each in reports if each.due is not None), default=None))
        gone = [self._learner.queries[id] for id in suspended_queries(results) if id in self._learner.queries]
        self._suspend(gone, turn)
        return results_to_events(results)

    def _watched(self, turn: BatchContext) -> Path:
        """Where workers find the queries with windows."""
        queries = list(self._learner.windows.values())
        if self._watching is None or self._watching[0] != queries:
            changes = [
                RegistryChange(each.since, QUERY, each.id, {**query_to_value(each), "first": each.since})
                for each in queries
            ]
            path = self._course.path / "windows" / f"{turn.upto:016x}-{os.getpid()}"
            replace_file(
                path, json.dumps([[each.position, each.kind, each.key, each.value] for each in changes]).encode()
            )
            self._watching = (queries, path)
            keep_newest(path.parent, KEPT_PROGRAMS)
        return self._watching[1]

    def _leave_word(self, due: int | None) -> None:
        """When there is to be a batch at the latest."""
        if due != self._due:
            replace_file(self._course.path / "due", str(due or NEVER).encode())
            self._due = due

    def told(self, turn: BatchContext) -> dict[str, object]:
        """For whoever looks after the process."""
        return {"position": turn.upto, "queries": len(self._learner.queries), **self._figures.told()}

    def _learn(self, upto: int) -> None:
        registry, learner = self._work.registry, self._learner
        if learner.version == 0:
            known = [*registry.list(STRUCTURE), *registry.list(QUERY)]
            learner.learn([each for each in known if each.position <= upto], upto)
        elif upto > learner.version:
            changes = registry.changes(learner.version, upto)
            learner.learn([each for each in changes if each.kind in (QUERY, STRUCTURE)], upto)
        asked = newest_renewal(registry)
        if asked is not None and self._made < asked.position <= upto:
            self._made = asked.position
            self._write_down()

    def _answered(self, entries: DataFrame, task: JoinTask) -> pa.Table:
        matches, reports = collect_joins(run_join_rounds(entries, task, self._work.costs), task)
        for report in reports:
            if isinstance(report, PredicateCounts):
                self._learner.rates.count(report.counts)
            else:
                self._figures.take(report)
        return matches

    def _task(self, state: Path, learner: NetworkPlanner, turn: BatchContext) -> JoinTask:
        program = learner.program(spread=self._course.spread)
        return JoinTask(self._written(program, turn), state, program.depth, self._course.stations, turn)

    def _write_down(self) -> None:
        """What is decided holds for batches that are done again: so it is written before anything is done by it."""
        course = {"stations": self._course.stations, "spread": self._course.spread, "made": self._made}
        replace_file(self._decisions, json.dumps(self._learner.rates.to_value() | course).encode())

    def _written(self, program: NetworkProgram, turn: BatchContext) -> Path:
        """Where workers find what a batch goes by."""
        if self._newest is None or self._newest[0] is not program:
            self._write_down()
            self._programs += 1
            path = self._course.path / "programs" / f"{turn.upto:016x}-{os.getpid()}-{self._programs}"
            replace_file(path, program.to_bytes())
            self._newest = (program, path)
            keep_newest(path.parent, KEPT_PROGRAMS)
        return self._newest[1]

    def _recalled(
        self, state: Path, past: Backfill, turn: BatchContext, start: int, pages: Iterator[int]
    ) -> Iterator[pa.Table]:
        """Page by page, of which no two of a batch have one number. What it answers is told at the position of the
        origin, which is in this batch."""
        learner = self._learner.some(past.queries)
        task = replace(self._task(state, learner, turn), past=past.origin)
        chronicle = EventHistory(self._work.ports.open_log(), self._work.ports.open_archive())
        after = past.begins - 1
        while after < start:
            page = chronicle.page(after, start, ONGOING_EVENTS)
            number, after = next(pages), page.reached
            blocks = list(pack_table(page.entries))
            if not blocks:
                continue
            frame = self._work.spark.createDataFrame(pa.Table.from_batches(blocks))
            found = self._answered(frame, replace(task, base=number * PAGE_ROUNDS))
            if past.told:
                at = pa.array(np.full(found.num_rows, past.origin, np.int64))
                yield found.set_column(0, MATCHES.field("position"), at)

    def _reorder(self, turn: BatchContext, start: int) -> None:
        """Decide anew about the structure whose order suits least what comes in, if it is much worse than it could be
        and not too much of the past would have to be taken in again."""
        learner, rates = self._learner, self._learner.rates
        if turn.batch % REORDER_BATCHES or rates.counts.total() < REORDER_COUNTED:
            return
        if any(each.since == turn.upto for each in learner.backward.values()):
            # It has this origin for itself.
            return
        regrets = {
            key: rates.regret(key, learner.structures[key].patterns)
            for key, since in learner.oldest.items()
            if start - since <= REORDER_POSITIONS and rates.origin(key) <= start
        }
        worst = max(regrets, key=regrets.__getitem__, default="")
        if worst and regrets[worst] > REORDER_TIMES:
            rates.decide(worst, turn.upto)
            learner.renew()

    def _outcome(self, matches: pa.Table, turn: BatchContext, memory: DistinctState) -> BatchOutcome:
        making = self._learner.making
        once = {group: query.after for group, query in self._learner.once.items()}
        fresh = memory.fresh(turn.batch, matches, once)
        events = list(construct_events(fresh, making))
        told = fresh.filter(pa.array(~np.isin(fresh["group"].to_numpy(), list(making)))) if making else fresh
        return BatchOutcome(pa.concat_tables([told, self._suspended(turn, memory)]), events)

    def _suspended(self, turn: BatchContext, memory: DistinctState) -> pa.Table:
        """Those that hold too much are suspended, and are told so; keys under which too much lies are spread."""
        self._learner.weigh(self._figures.heavy)
        once = self._learner.once
        crowded = [once[each] for each in memory.crowded(ONCE_ANSWERS) if each in once]
        crowded += self._learner.waiting_at(self._figures.crowded) if self._figures.crowded else []
        self._figures.heavy, self._figures.crowded = set(), set()
        self._suspend(crowded, turn)
        rows = [
            {"position": turn.upto, "subscription": each.since, "limit": LimitReached.STATE.value} for each in crowded
        ]
        return pa.Table.from_pylist(rows, schema=MATCHES)

    def _suspend(self, queries: Sequence[ContinuousQuery], turn: BatchContext) -> None:
        gone = [replace(each, state=QueryState.SUSPENDED) for each in queries]
        if gone:
            logger.warning("suspended, since they hold more than they may: %s", [each.id for each in gone])
            self._work.registry.put([(QUERY, each.id, {**query_to_value(each), "first": each.since}) for each in gone])
            self._learner.learn(
                [RegistryChange(turn.upto, QUERY, each.id, None) for each in gone], self._learner.version
            )


def _apply_decisions(course: ContinuousOptions, decided: Mapping[str, Any]) -> ContinuousOptions:
    """As the first start has it: what lies in so many stations, spread in one way, is found in no other."""
    found = replace(
        course, stations=decided.get("stations", course.stations), spread=decided.get("spread", course.spread)
    )
    if found != course:
        logger.warning("continuous queries go on as they began, with %s stations, %s", found.stations, found.strategy)
    return found


# The `ongoing` query: events and the registry in, answers of continuous queries out.

CONTINUOUS_JOB = "ongoing"
"""The name of the query."""


def start_continuous(work: JobContext, course: ContinuousOptions) -> StreamingQuery | None:
    """Every event against every continuous query; None as long as there are none."""
    queries = work.registry.list(QUERY, limit=1)
    if not queries:
        return None
    checkpoint = Checkpoint(work.checkpoints / CONTINUOUS_JOB)
    outbox = cache(work.ports.open_outbox)
    after = outbox("").head(OutboxLane.CONTINUOUS) or queries[0].position - 1
    batching = Batching(after, work.cores, ONGOING_EVENTS, ONGOING_TEXT_BYTES)
    streaming = StreamingJob(CONTINUOUS_JOB, checkpoint, batching, course.interval)
    books = ContinuousDriver(work, course)

    def deliver(entries: DataFrame, number: int) -> None:
        turn = BatchContext(number, checkpoint.upto(number), checkpoint.time(number))
        before = checkpoint.upto(number - 1) if number else after
        outcome = books.joins(checkpoint.id, entries, turn, before)
        publish_answers(work.log, [*outcome.events, *books.windows(checkpoint.id, entries, turn, before)])
        outbox(checkpoint.id).write(number, turn.upto, outcome.matches, OutboxLane.CONTINUOUS)
        books.forget(checkpoint.id)
        work.ongoing.update(books.told(turn))

    return start_job(work, streaming, deliver, timed_log_source(work.ports.open_log, course.path / "due"))


def publish_answers(log: Log, events: Sequence[tuple[str, Event]]) -> None:
    """Append answers to the streams that they are for. Those of a batch that is done again are there already, and are
    not stored twice: they have ids of their own."""
    ordered = sorted(events, key=itemgetter(0))
    publications = [
        Publication(stream, [event for _, event in found], given=frozenset(event.id for _, event in found))
        for stream, found in ((stream, list(group)) for stream, group in groupby(ordered, key=itemgetter(0)))
    ]
    if publications:
        log.append(publications)
