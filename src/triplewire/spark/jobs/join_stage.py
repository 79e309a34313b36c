"""The join stage: the join network of continuous queries as rounds of partitions.

A partition writes the rows that it keeps in a round to its changelog before it emits what follows from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from triplewire.continuous.join_network.builder import to_network_events
from triplewire.continuous.join_network.kernels import ADDRESSES
from triplewire.continuous.join_network.layout import ROWS
from triplewire.continuous.join_network.partition import (
    EventRouter,
    JoinOutput,
    JoinPartition,
    PartitionBuckets,
    split_by_partition,
)
from triplewire.continuous.planner import NetworkProgram
from triplewire.continuous.state import BatchRound, StateChangelog
from triplewire.kernels.arrays import Int64
from triplewire.model import MATCHES
from triplewire.spark.jobs.exchange import send_report, send_to_driver, send_to_partition
from triplewire.spark.jobs.stateful import FileCache, PartitionCache, Stage, StageTask, run_stage
from triplewire.spark.jobs.workers import CpuCosts

HEAVY_ROWS: Final = 20_000
"""Triples under one join key, such as all of one class, from which on they are spread over all partitions."""

LIVE_ROUNDS = 10**9
"""Rounds with new events have numbers above this; those of backfills come before them in a batch."""

DISORDER = 10_000_000
"""Microseconds by which an event may have been received before one at an earlier position: rows expire that much
later."""

SNAPSHOT_BYTES = 16 * 1024 * 1024
"""Bytes of changes from which on a snapshot is written: they are read in a fifth of a second."""


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


_programs = FileCache(NetworkProgram.from_bytes)
_partitions = PartitionCache[_CachedPartition]()


def run_joins(blocks: DataFrame, task: JoinTask, costs: CpuCosts) -> tuple[pa.Table, Sequence[object]]:
    """Run the join network over a frame of `BLOCKS`; return matches, and reports of type `JoinReport` and
    `PredicateCounts`."""
    rounds = 1 if task.partitions == 1 else max(1, task.depth - 1)
    functions = [partial(_run_round, task, number) for number in range(1, rounds + 1)]
    stage = Stage(partial(_route, task), ROWS, functions, MATCHES, task.spilled)
    return run_stage(blocks, stage, task.partitions, costs)


def _route(task: JoinTask, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    program = _programs.read(task.program)
    router = EventRouter(program.plan)
    for entries in tables:
        rows, answers = router.route(to_network_events(entries, program.scopes, task.origin))
        yield from _send_by_partition(rows, task.partitions)
        yield from send_to_driver(program.projections.to_matches(answers), task.spilled)
    yield send_report(PredicateCounts(router.count_predicates()))


def _run_round(task: JoinTask, number: int, partition: int, rows: pa.Table) -> list[pa.RecordBatch]:
    if not rows.num_rows:
        return []
    changelog, batch_round = StateChangelog(task.state / str(partition)), (task.context.batch, task.base + number)
    cached, rebuilt = _load_partition(task, changelog, partition, batch_round)
    output = cached.joins.process(rows)
    changelog.write(batch_round, output.stored)
    cached.position, cached.time = task.context.position, max(cached.time, pc.max(rows["ended"]).as_py())
    _partitions.put_back(changelog, cached, (batch_round[0], batch_round[1] + 1), rebuilt=rebuilt)
    matches = _programs.read(task.program).projections.to_matches(output.answers)
    return [
        *_send_by_partition(output.leaving, task.partitions, partition),
        *send_to_driver(matches, task.spilled),
        send_report(_report(task, partition, cached.joins, output)),
    ]


def _report(task: JoinTask, number: int, joins: JoinPartition, output: JoinOutput) -> JoinReport:
    stores, spread = (joins.triples, joins.partials), task.partitions > 1 and joins.plan.spread[0]
    return JoinReport(
        number,
        sum(each.size for each in stores),
        sum(each.bytes for each in stores),
        np.bincount(np.maximum(output.stored["address"].to_numpy(), 0), minlength=ADDRESSES),
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
    # The program of a backfill does not know the other queries: nothing expires by it.
    if task.origin is None and changes.ends_before(batch_round[0]):
        cached.joins.expire(cached.position, cached.time - DISORDER)
        snapshot, since = changelog.sizes()
        if since > max(snapshot, SNAPSHOT_BYTES):
            changelog.write_snapshot(batch_round[0] - 1, cached.joins.snapshot())
            changelog.trim(batch_round[0] - 1)
    return cached, rebuilt


def _send_by_partition(rows: pa.Table, partitions: int, but: int | None = None) -> Iterator[pa.RecordBatch]:
    for number, part in split_by_partition(rows, partitions, but):
        yield from send_to_partition(number, part)
