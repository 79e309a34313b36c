"""The join stage: the join network of continuous queries as rounds of partitions.

A partition writes the rows that it keeps in a round to its changelog before it emits what follows from them. Where one
task runs all rounds, it writes those of all rounds at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.continuous.join_network.builder import to_network_events
from triplewire.continuous.join_network.kernels import ADDRESSES
from triplewire.continuous.join_network.layout import ROWS
from triplewire.continuous.join_network.partition import (
    EventRouter,
    JoinPartition,
    PartitionBuckets,
    split_by_partition,
)
from triplewire.continuous.planner import NetworkProgram
from triplewire.continuous.state import BatchRound, StateChangelog
from triplewire.kernels.arrays import Int64
from triplewire.model import MATCHES
from triplewire.spark.jobs.exchange import send_report, send_to_driver, send_to_partition
from triplewire.spark.jobs.source import EventFrame
from triplewire.spark.jobs.stateful import FileCache, PartitionCache, Stage, StageTask, run_stage
from triplewire.spark.jobs.workers import CpuCosts

HEAVY_ROWS: Final = 20_000
"""Triples under one join key, such as all of one class, from which on they are spread over all partitions."""

PAGE_ROUNDS = 1_000
"""Numbers of rounds for one page of a backfill, and for new events: more than a chain has patterns."""

ALL_ROUNDS = PAGE_ROUNDS - 1
"""The number of all rounds together, where one task runs them."""

LIVE_ROUNDS = 10**9
"""Rounds with new events have numbers above this; those of backfills come before them in a batch."""

DISORDER = 10_000_000
"""Microseconds by which an event may have been received before one at an earlier position: rows expire that much
later."""

SNAPSHOT_BYTES = 16 * 1024 * 1024
"""Bytes of changes from which on a snapshot is written: they are read in a fifth of a second."""

FILE_BYTES = 32 * 1024
"""Bytes of changes that a small file counts as: to open it takes as long as to read so many."""

MEASURED_BYTES = SNAPSHOT_BYTES // 16
"""Bytes of changes from one look at the sizes of all files of a changelog to the next."""

EXPIRY_SHARE = 16
"""A partition looks through its rows for those that have expired once one in so many is new."""


@dataclass(frozen=True)
class JoinTask(StageTask):
    """A batch of the join stage."""

    program: Path
    depth: int
    """The patterns of the longest chain."""
    row_limit: int
    """Partial results that may wait at one node of a partition."""
    base: int = LIVE_ROUNDS
    """The number before the first round."""
    origin: int | None = None
    """The origin of the scopes that a backfill is for."""

    @property
    def spilled(self) -> Path:
        return self.state / "answers"


@dataclass(frozen=True)
class JoinReport:
    """The size of a partition after a round, and how many rows came to each address."""

    partition: int
    rows: int
    bytes: int
    addresses: Int64
    overfull: Sequence[int] = ()
    """Nodes at which more partial results wait than the limit."""
    heavy: Sequence[int] = ()
    """Join keys with more triples than `HEAVY_ROWS`."""


@dataclass(frozen=True)
class PredicateCounts:
    """The number of triples that were routed, by predicate."""

    counts: Mapping[str, int]


@dataclass
class _CachedPartition:
    """A join partition, the program that it follows, and the position and time that it has reached."""

    joins: JoinPartition
    program: Path
    position: int = 0
    time: int = 0
    unexpired: int = 0
    """Rows that were added since rows were last looked through for those that have expired."""
    unmeasured: int = 0
    """Bytes that were added since the changelog was last measured."""

    def count(self, added: pa.Table) -> None:
        self.unexpired += added.num_rows
        self.unmeasured += max(added.nbytes, FILE_BYTES)

    def expire(self) -> None:
        """Drop rows that have expired, if so many were added that looking through all of them is worth it."""
        if EXPIRY_SHARE * self.unexpired >= self.joins.triples.size + self.joins.partials.size:
            self.joins.expire(self.position, self.time - DISORDER)
            self.unexpired = 0

    def write_snapshot(self, changelog: StateChangelog, batch: int) -> None:
        """Write a snapshot as of the end of a batch, if the changes since the last one are as large as it."""
        if self.unmeasured < MEASURED_BYTES:
            return
        self.unmeasured = 0
        snapshot, since = changelog.sizes(FILE_BYTES)
        if since > max(snapshot, SNAPSHOT_BYTES):
            changelog.write_snapshot(batch, self.joins.snapshot())
            changelog.trim(batch)


_programs = FileCache(NetworkProgram.from_bytes)
_partitions = PartitionCache[_CachedPartition]()


def run_joins(events: EventFrame, task: JoinTask, costs: CpuCosts) -> tuple[pa.Table, Sequence[object]]:
    """Run the join network over the events of a batch; return matches, and reports of type `JoinReport` and
    `PredicateCounts`."""
    rounds = 1 if task.partitions == 1 else max(1, task.depth - 1)
    functions = [partial(_run_round, task, number) for number in range(1, rounds + 1)]
    stage = Stage(partial(_route, task), ROWS, functions, partial(_run_alone, task), MATCHES, task.spilled)
    return run_stage(events, stage, task.partitions, costs)


def _route(task: JoinTask, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    program = _programs.read(task.program)
    router = EventRouter(program.plan)
    for entries in tables:
        rows, answers = router.route(to_network_events(entries, program.scopes, task.origin))
        for number, part in split_by_partition(rows, task.partitions):
            yield from send_to_partition(number, part)
        yield from send_to_driver(program.projections.to_matches(answers), task.spilled)
    yield send_report(PredicateCounts(router.count_predicates()))


def _run_round(task: JoinTask, number: int, partition: int, rows: pa.Table) -> list[pa.RecordBatch]:
    if not rows.num_rows:
        return []
    run = _PartitionRun(task, partition, number)
    leaving = [row for each in run.join(rows) for row in send_to_partition(*each)]
    run.write(number, instead_of=[ALL_ROUNDS])
    return [*leaving, *run.results()]


def _run_alone(task: JoinTask, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Run all rounds in this task, until no row leaves a partition. Each partition writes one file of its changelog,
    all at the same time, because the disk takes syncs that come together as one."""
    program = _programs.read(task.program)
    router, runs, moving = EventRouter(program.plan), dict[int, _PartitionRun](), defaultdict[int, list[pa.Table]](list)
    for entries in tables:
        rows, answers = router.route(to_network_events(entries, program.scopes, task.origin))
        yield from send_to_driver(program.projections.to_matches(answers), task.spilled)
        for number, part in split_by_partition(rows, task.partitions):
            moving[number].append(part)
    yield send_report(PredicateCounts(router.count_predicates()))
    while moving:
        arrived, moving = moving, defaultdict(list)
        for partition, rows in sorted(arrived.items()):
            if partition not in runs:
                runs[partition] = _PartitionRun(task, partition, 1)
            for number, part in runs[partition].join(pa.concat_tables(rows)):
                moving[number].append(part)
    with ThreadPoolExecutor(max(1, len(runs))) as threads:
        list(threads.map(lambda run: run.write(ALL_ROUNDS, instead_of=range(1, task.depth)), runs.values()))
    for run in runs.values():
        yield from run.results()


class _PartitionRun:
    """A partition that runs for one round of a batch, or for all. One that does not come to its end is rebuilt."""

    def __init__(self, task: JoinTask, partition: int, first: int) -> None:
        """`first` is the number of the first round."""
        self._task = task
        self._partition = partition
        self._changelog = StateChangelog(task.state / str(partition))
        before = (task.context.batch, task.base + first)
        self._cached, self._rebuilt = _load_partition(task, self._changelog, partition, before)
        self._stored: list[pa.Table] = []
        self._answers: list[pa.Table] = []

    def join(self, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Join new rows; return those that leave, by partition."""
        output = self._cached.joins.process(rows)
        self._stored.append(output.stored)
        self._answers.append(output.answers)
        self._cached.time = max(self._cached.time, pc.max(rows["ended"]).as_py())
        return split_by_partition(output.leaving, self._task.partitions, self._partition)

    def write(self, number: int, instead_of: Iterable[int]) -> None:
        """Write the rows that were stored as those of a round. `instead_of` has the rounds under which an earlier
        attempt of the batch may have written them."""
        batch, base, stored = self._task.context.batch, self._task.base, pa.concat_tables(self._stored)
        self._changelog.drop([(batch, base + each) for each in instead_of])
        self._changelog.write((batch, base + number), stored)
        self._cached.count(stored)
        self._cached.position = self._task.context.position
        _partitions.put_back(self._changelog, self._cached, (batch, base + number + 1), rebuilt=self._rebuilt)

    def results(self) -> Iterator[pa.RecordBatch]:
        """Yield what follows from the rows that were written, and a report."""
        task, projections = self._task, _programs.read(self._task.program).projections
        yield from send_to_driver(projections.to_matches(pa.concat_tables(self._answers)), task.spilled)
        yield send_report(_report(task, self._partition, self._cached.joins, pa.concat_tables(self._stored)))


def _report(task: JoinTask, number: int, joins: JoinPartition, stored: pa.Table) -> JoinReport:
    stores, spread = (joins.triples, joins.partials), task.partitions > 1 and joins.plan.spread[0]
    return JoinReport(
        number,
        sum(each.size for each in stores),
        sum(each.bytes for each in stores),
        np.bincount(np.maximum(stored["address"].to_numpy(), 0), minlength=ADDRESSES),
        joins.overfull_nodes(task.row_limit),
        joins.heavy_keys(HEAVY_ROWS) if spread else (),
    )


def _load_partition(
    task: JoinTask, changelog: StateChangelog, number: int, batch_round: BatchRound
) -> tuple[_CachedPartition, bool]:
    """Return the partition as it was before a round, under the program of the batch, and whether it is a new one."""
    program = _programs.read(task.program)
    cached, changes = _partitions.take_out(changelog, batch_round)
    rebuilt = cached is None
    if cached is None:
        buckets = PartitionBuckets(number, task.partitions)
        cached = _CachedPartition(JoinPartition(program.plan, buckets), task.program)
    elif cached.program != task.program:
        cached.joins.adopt(program.plan)
        cached.program = task.program
    for table in changes:
        cached.joins.restore(table)
        cached.count(table)
    # The program of a backfill does not know the other queries: nothing expires by it.
    if task.origin is None and changes.ends_before(batch_round[0]):
        cached.expire()
        cached.write_snapshot(changelog, batch_round[0] - 1)
    return cached, rebuilt
