"""Stateful stages: what the join stage and the window stage of continuous queries share.

```
log ──▶ route ──▶ exchange ───▶ round 1 ──▶ exchange ───▶ round 2 ──▶ … ──▶ driver      a large batch
                  by partition              by partition

log ──▶ route and all partitions, in one task ──▶ driver                                a small batch
```

A stage is a function from the events of a batch to output tables and reports in the driver. An exchange costs some
100 ms, whatever it moves, so a batch that one task reads is also run by that task. A worker caches the partitions that
it runs. One that is behind catches up from its changelog, or is rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar

import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql.pandas.types import from_arrow_schema

from triplewire.config.heap import freeze_heap
from triplewire.continuous.state import BEFORE_ALL, BatchContext, BatchRound, ChangelogRange, StateChangelog
from triplewire.spark.jobs.exchange import (
    EXCHANGED,
    collect_outputs,
    current_partition,
    pass_through,
    read_inputs,
)
from triplewire.spark.jobs.source import EventFrame, ReadEvents
from triplewire.spark.jobs.workers import CpuCosts, charge_cpu, hide_pandas

ALONE_SECONDS: Final = 0.5
"""CPU time of a stage in a batch from which on the next is spread over partitions though one task reads it: about as
much as the exchanges take."""

T = TypeVar("T")
Route = Callable[[Iterable[pa.Table]], Iterator[pa.RecordBatch]]
"""Turns the events of a task into rows for partitions, and output."""
Round = Callable[[int, pa.Table], Sequence[pa.RecordBatch]]
"""Runs a partition, given by its number, over its inputs."""
Alone = Callable[[Iterable[pa.Table]], Iterator[pa.RecordBatch]]
"""Runs all partitions over the events of a batch, and yields output."""


@dataclass(frozen=True)
class StageTask:
    """A batch, as workers need to know it: the directory of its state, and the number of partitions."""

    state: Path
    partitions: int
    context: BatchContext


@dataclass
class StageLoad:
    """The CPU seconds of a stage in its last batch, which decide whether one task runs the next."""

    account: Accumulator[float]
    seconds: float = 0.0

    @contextmanager
    def place(self, events: EventFrame) -> Iterator[EventFrame]:
        """Give the events of a batch, to be run by one task or not, and measure the batch."""
        before = self.account.value
        yield replace(events, alone=events.alone and self.seconds < ALONE_SECONDS)
        self.seconds = self.account.value - before


@dataclass(frozen=True)
class Stage:
    """A stage of a batch: how events are routed, the rounds in which partitions run, and all of it in one task."""

    route: Route
    inputs: pa.Schema
    rounds: Sequence[Round]
    alone: Alone
    outputs: pa.Schema
    spilled: Path
    """The folder for large outputs."""


def run_stage(events: EventFrame, stage: Stage, partitions: int, costs: CpuCosts) -> tuple[pa.Table, Sequence[object]]:
    """Run a stage over the events of a batch; return its outputs and the reports of its partitions."""
    schema = from_arrow_schema(EXCHANGED)
    first = stage.alone if events.alone else stage.route
    frame = events.rows.mapInArrow(partial(_run_first, first, events.read, costs), schema)
    for each in () if events.alone else stage.rounds:
        function = partial(_run_partition, each, stage.inputs, costs)
        frame = frame.repartitionById(partitions, "partition").mapInArrow(function, schema)
    return collect_outputs(frame, stage.outputs, stage.spilled)


def _run_first(
    run: Route | Alone, read: ReadEvents, costs: CpuCosts, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    hide_pandas()
    rows = run(read(batches))
    while True:
        with charge_cpu(costs.continuous):
            row = next(rows, None)
        if row is None:
            return
        yield row


def _run_partition(
    run: Round, schema: pa.Schema, costs: CpuCosts, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    hide_pandas()
    tables = [schema.empty_table()]
    for batch in batches:
        tables += read_inputs(batch)
        yield from pass_through(batch)
    with charge_cpu(costs.continuous):
        outputs = run(current_partition(), pa.concat_tables(tables))
    yield from outputs


class PartitionCache(Generic[T]):
    """The partitions of a stage in this worker process, by the directories of their changelogs.

    A partition is taken out while a round runs and put back after it: one whose round failed is rebuilt.
    """

    def __init__(self) -> None:
        self._cached: dict[Path, tuple[T, BatchRound]] = {}

    def take_out(self, changelog: StateChangelog, before: BatchRound) -> tuple[T | None, ChangelogRange]:
        """Return a partition and the changes that bring it to where it was before a round. Without a partition, the
        changes are complete."""
        partition, ready = self._cached.pop(changelog.path, (None, BEFORE_ALL))
        if partition is None or ready > before:
            return None, changelog.read_range(BEFORE_ALL, before)
        changes = changelog.read_range((ready[0], ready[1] - 1), before)
        return (None if changes.complete else partition), changes

    def put_back(self, changelog: StateChangelog, partition: T, ready: BatchRound, *, rebuilt: bool) -> None:
        """Cache a partition that is ready for a round. Partitions of other generations are dropped."""
        self._cached[changelog.path] = partition, ready
        if rebuilt:
            for path in [each for each in self._cached if each.parent != changelog.path.parent]:
                del self._cached[path]
            freeze_heap()

    def clear(self) -> None:
        self._cached.clear()


class FileCache(Generic[T]):
    """The parsed content of the newest file of each directory, read once in a worker process."""

    def __init__(self, parse: Callable[[bytes], T]) -> None:
        self._parse = parse
        self._parsed: dict[Path, T] = {}

    def read(self, path: Path) -> T:
        if path not in self._parsed:
            content = self._parse(path.read_bytes())
            for other in [each for each in self._parsed if each.parent == path.parent]:
                del self._parsed[other]
            self._parsed[path] = content
            freeze_heap()
        return self._parsed[path]

    def clear(self) -> None:
        self._parsed.clear()
