"""The window stage: windows of continuous queries as one round of partitions.

A query belongs to one partition. Every partition runs in every batch, also when nothing came for it, because time goes
on. A partition writes its inputs to its changelog before it reports results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.continuous.state import BEFORE_ALL, BatchContext, StateChangelog
from triplewire.continuous.state_manager import read_queries
from triplewire.continuous.windows.evaluation import INPUTS
from triplewire.continuous.windows.partition import WindowFigures, WindowPartition
from triplewire.continuous.windows.plans import plan_windows
from triplewire.continuous.windows.results import RESULTS
from triplewire.continuous.windows.static_data import StaticData
from triplewire.model import Erasure
from triplewire.model.erasure import blank_erased
from triplewire.spark.jobs.exchange import send_report, send_to_driver, send_to_partition
from triplewire.spark.jobs.source import EventFrame
from triplewire.spark.jobs.stateful import FileCache, PartitionCache, Stage, StageTask, run_stage
from triplewire.spark.jobs.workers import CpuCosts
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import QUERY

SNAPSHOT_BATCHES = 64
"""Batches from one snapshot of a partition to the next: to replay them takes a second or two."""

_CONTEXT = b"context"
_CHANGELOG = "windows-"
"""The prefix of changelog directories, before the number of the partition."""


@dataclass(frozen=True)
class WindowTask(StageTask):
    """A batch of the window stage."""

    queries: Path
    open_static_data: Callable[[], StaticData]

    @property
    def spilled(self) -> Path:
        return self.state / "window-answers"


@dataclass(frozen=True)
class WindowReport:
    """The size of a partition after a batch, and when it must run again at the latest."""

    partition: int
    figures: WindowFigures
    due: int | None


@dataclass
class _CachedPartition:
    """A window partition, and the queries that it knows."""

    windows: WindowPartition
    queries: Path | None = None
    known: frozenset[str] = frozenset()


_partitions = PartitionCache[_CachedPartition]()
_queries = FileCache(read_queries)


def partition_of_query(query: str, partitions: int) -> int:
    return crc32(query.encode()) % partitions


def run_windows(events: EventFrame, task: WindowTask, costs: CpuCosts) -> tuple[pa.Table, Sequence[object]]:
    """Run windows over the events of a batch; return `RESULTS`, and reports of type `WindowReport`."""
    run = partial(_run_partition, task)
    stage = Stage(partial(_route, task), INPUTS, [run], partial(_run_alone, task), RESULTS, task.spilled)
    return run_stage(events, stage, task.partitions, costs)


def rewrite_changelogs(before: Path, after: Path, batch: int, erasures: Sequence[Erasure]) -> None:
    """Copy the inputs of all partitions before a batch to another generation, without erased data. Events that were
    erased whole stay as empty ones, because counting windows have counted them."""
    for folder in before.glob(f"{_CHANGELOG}*"):
        changes = StateChangelog(folder).read_range(BEFORE_ALL, (batch, 0))
        for batch_round, table in zip(changes.rounds, changes, strict=True):
            StateChangelog(after / folder.name).write(batch_round, blank_erased(table, erasures))


def _route(task: WindowTask, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    for number, chosen in _split_events(task, tables):
        yield from send_to_partition(number, chosen)


def _run_alone(task: WindowTask, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Run all partitions in this task."""
    inputs = [[INPUTS.empty_table()] for _ in range(task.partitions)]
    for number, chosen in _split_events(task, tables):
        inputs[number].append(chosen)
    for number, chosen in enumerate(inputs):
        yield from _run_partition(task, number, pa.concat_tables(chosen))


def _split_events(task: WindowTask, tables: Iterable[pa.Table]) -> Iterator[tuple[int, pa.Table]]:
    """Yield events with each partition whose queries have windows over their streams."""
    wanted = [_streams(task, number) for number in range(task.partitions)]
    for entries in tables:
        for number, streams in enumerate(wanted):
            yield number, entries.filter(pc.is_in(entries["stream"], streams)).select(INPUTS.names)


def _streams(task: WindowTask, number: int) -> pa.Array:
    plans = [plan_windows(str((each.value or {})["text"])) for each in _own_queries(task, number)]
    return pa.array(sorted({name for each in plans for name in each.streams}), pa.string())


def _own_queries(task: WindowTask, number: int) -> list[RegistryChange]:
    return [each for each in _queries.read(task.queries) if partition_of_query(each.key, task.partitions) == number]


def _run_partition(task: WindowTask, number: int, inputs: pa.Table) -> list[pa.RecordBatch]:
    changelog, batch = StateChangelog(task.state / f"{_CHANGELOG}{number}"), task.context.batch
    entries = inputs.sort_by("position")
    cached, rebuilt = _load_partition(task, changelog, number)
    changelog.write((batch, 1), entries.replace_schema_metadata({_CONTEXT: _context_to_bytes(task.context)}))
    results = cached.windows.process(entries, task.context)
    _partitions.put_back(changelog, cached, (batch + 1, 0), rebuilt=rebuilt)
    report = WindowReport(number, cached.windows.figures, cached.windows.due(task.context.now))
    return [*send_to_driver(results, task.spilled), send_report(report)]


def _load_partition(task: WindowTask, changelog: StateChangelog, number: int) -> tuple[_CachedPartition, bool]:
    """Return the partition as it was before a batch, with the queries of the batch, and whether it is a new one."""
    batch = task.context.batch
    cached, changes = _partitions.take_out(changelog, (batch, 0))
    rebuilt = cached is None
    if cached is None:
        cached = _CachedPartition(WindowPartition(task.open_static_data()))
    _apply_queries(cached, task, number)
    for table in changes:
        cached.windows.restore(table, _context_of(table, task.context))
    if rebuilt:
        # A snapshot has queries that may have ended since.
        cached.queries, cached.known = None, cached.known | frozenset(cached.windows.figures.held)
        _apply_queries(cached, task, number)
    if batch and batch % SNAPSHOT_BATCHES == 0:
        changelog.write_snapshot(batch - 1, cached.windows.snapshot())
        changelog.trim(batch - 1)
    return cached, rebuilt


def _apply_queries(cached: _CachedPartition, task: WindowTask, number: int) -> None:
    """Bring the queries of a partition up to date; those that the file no longer has have ended."""
    if cached.queries == task.queries:
        return
    own = _own_queries(task, number)
    ids = frozenset(each.key for each in own)
    ended = [RegistryChange(task.context.position, QUERY, each, None) for each in sorted(cached.known - ids)]
    cached.windows.apply_changes([*ended, *own])
    cached.queries, cached.known = task.queries, ids


def _context_to_bytes(context: BatchContext) -> bytes:
    return json.dumps([context.batch, context.position, context.now]).encode()


def _context_of(table: pa.Table, otherwise: BatchContext) -> BatchContext:
    metadata = table.schema.metadata or {}
    return BatchContext(*json.loads(metadata[_CONTEXT])) if _CONTEXT in metadata else otherwise
