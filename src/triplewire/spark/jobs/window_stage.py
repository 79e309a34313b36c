"""The window stage: windows of continuous queries as functions from frame to frame.

```
log ──▶ sort out ──▶ exchange ─────▶ evaluate ──▶ driver ──▶ log
        by stream    by partition
```

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
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from triplewire.continuous.state import BEFORE_ALL, BatchContext, BatchRound, StateChangelog
from triplewire.continuous.windows.partition import INPUTS, WindowFigures, WindowPartition
from triplewire.continuous.windows.plans import plan_windows
from triplewire.continuous.windows.results import RESULTS
from triplewire.continuous.windows.static_data import StaticData
from triplewire.model import Erasure
from triplewire.model.erasure import blank_erased
from triplewire.spark.jobs import exchange
from triplewire.spark.jobs.exchange import (
    EXCHANGED,
    current_partition,
    read_inputs,
    send_report,
    send_to_driver,
    send_to_partition,
    unpack_blocks,
)
from triplewire.spark.jobs.workers import CpuCosts, charge_cpu, drop_other_generations, freeze_heap, hide_pandas
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import QUERY

SNAPSHOT_BATCHES = 64
"""Turns of a place after which all that it has is written down at once: to go through them again takes a second or
two."""

_CONTEXT = b"turn"
_CHANGELOG = "windows-"
"""How the names of ledgers begin, before the numbers of places."""


@dataclass(frozen=True)
class WindowTask:
    """What workers need to know of a batch: where they find the queries, and the ledgers; how many places there are;
    and what there is beside windows."""

    queries: Path
    ledgers: Path
    places: int
    turn: BatchContext
    open_background: Callable[[], StaticData]

    @property
    def answers(self) -> Path:
        """Where answers lie that are many."""
        return self.ledgers / "window-answers"


@dataclass(frozen=True)
class WindowReport:
    """What a place says of itself after a turn: how much it has, and when it is to have its next at the latest."""

    place: int
    figures: WindowFigures
    due: int | None


@dataclass
class _WorkerPartition:
    """A place of this worker, the batch before which it is as it was, and the queries that it knows."""

    place: WindowPartition
    before: int
    queries: Path | None = None
    known: frozenset[str] = frozenset()


_partitions: dict[Path, _WorkerPartition] = {}
"""Of this worker process, by their ledgers."""

_changes: dict[Path, Sequence[RegistryChange]] = {}
"""Likewise, what brought queries, by the file that it was read from."""


def partition_of_query(query: str, places: int) -> int:
    """Where a query belongs."""
    return crc32(query.encode()) % places


def run_windows(blocks: DataFrame, task: WindowTask, costs: CpuCosts) -> DataFrame:
    """From a frame of `BLOCKS` to one of `SENT`, all of whose blocks are results or reports."""
    schema = from_arrow_schema(EXCHANGED)
    sorted_out = blocks.mapInArrow(partial(_sort_out, task), schema)
    return sorted_out.repartitionById(task.places, "place").mapInArrow(partial(_run_partition, task, costs), schema)


def collect_windows(shipped: DataFrame, task: WindowTask) -> tuple[pa.Table, list[WindowReport]]:
    """In the driver: all results, and what places say."""
    results, reports = exchange.collect_outputs(shipped, RESULTS, task.answers)
    return results, [each for each in reports if isinstance(each, WindowReport)]


def rewrite_changelogs(before: Path, after: Path, batch: int, erasures: Sequence[Erasure]) -> None:
    """Write down anew, in another place, what was given to places before a batch, without what is being erased. Events
    of which nothing is left stay as events that say nothing: windows that count have counted them."""
    for folder in before.glob(f"{_CHANGELOG}*"):
        past = StateChangelog(folder).since(BEFORE_ALL, (batch, 0))
        for moment, table in zip(past.moments, past, strict=True):
            StateChangelog(after / folder.name).write(moment, blank_erased(table, erasures))


def _sort_out(task: WindowTask, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Events to the places whose queries have windows over their streams."""
    hide_pandas()
    wanted = [_streams(task, place) for place in range(task.places)]
    for entries in unpack_blocks(batches):
        for place, streams in enumerate(wanted):
            found = entries.filter(pc.is_in(entries["stream"], streams))
            yield from send_to_partition(place, found.select(INPUTS.names))


def _streams(task: WindowTask, place: int) -> pa.Array:
    own = [each for each in _read_changes(task.queries) if partition_of_query(each.key, task.places) == place]
    names = {name for each in own for name in plan_windows(str((each.value or {})["text"])).streams}
    return pa.array(sorted(names), pa.string())


def _run_partition(task: WindowTask, costs: CpuCosts, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    hide_pandas()
    table = pa.concat_tables([INPUTS.empty_table(), *(each for batch in batches for each in read_inputs(batch))])
    with charge_cpu(costs.ongoing):
        found = _run_batch(task, current_partition(), table.sort_by("position"))
    yield from found


def _run_batch(task: WindowTask, number: int, entries: pa.Table) -> list[pa.RecordBatch]:
    ledger, moment = StateChangelog(task.ledgers / f"{_CHANGELOG}{number}"), (task.turn.batch, 1)
    kept = _load_partition(task, ledger, number)
    ledger.write(moment, entries.replace_schema_metadata({_CONTEXT: _context_to_bytes(task.turn)}))
    results = kept.place.take(entries, task.turn)
    kept.before = task.turn.batch + 1
    report = WindowReport(number, kept.place.figures, kept.place.due(task.turn.now))
    return [*send_to_driver(results, task.answers), send_report(report)]


def _load_partition(task: WindowTask, ledger: StateChangelog, number: int) -> _WorkerPartition:
    """The place as it is before a batch, and knows the queries of the batch."""
    kept, batch = _partitions.get(ledger.path), task.turn.batch
    reached: BatchRound = BEFORE_ALL if kept is None or kept.before > batch else (kept.before - 1, 1)
    past = ledger.since(reached, (batch, 0))
    if kept is None or past.anew:
        kept = _WorkerPartition(WindowPartition(task.open_background()), 0)
    _learn_queries(kept, task, number)
    for table in past:
        kept.place.restore(table, _context_of(table, task.turn))
    if past.anew:
        # What was written down as a whole has queries that may have ended since.
        kept.queries, kept.known = None, kept.known | frozenset(kept.place.figures.held)
        _learn_queries(kept, task, number)
    _write_snapshot(ledger, kept.place, batch)
    if ledger.path not in _partitions:
        drop_other_generations(_partitions, ledger.path.parent)
        freeze_heap()
    _partitions[ledger.path] = kept
    return kept


def _learn_queries(kept: _WorkerPartition, task: WindowTask, number: int) -> None:
    """Which queries there are; those that are there no more have ended."""
    if kept.queries == task.queries:
        return
    own = [each for each in _read_changes(task.queries) if partition_of_query(each.key, task.places) == number]
    ids = frozenset(each.key for each in own)
    kept.place.learn(RegistryChange(task.turn.upto, QUERY, each, None) for each in sorted(kept.known - ids))
    kept.place.learn(own)
    kept.queries, kept.known = task.queries, ids


def _write_snapshot(ledger: StateChangelog, place: WindowPartition, batch: int) -> None:
    if batch and batch % SNAPSHOT_BATCHES == 0:
        ledger.settle(batch - 1, place.kept())
        ledger.trim(batch - 1)


def _context_to_bytes(turn: BatchContext) -> bytes:
    return json.dumps([turn.batch, turn.upto, turn.now]).encode()


def _context_of(table: pa.Table, otherwise: BatchContext) -> BatchContext:
    metadata = table.schema.metadata or {}
    return BatchContext(*json.loads(metadata[_CONTEXT])) if _CONTEXT in metadata else otherwise


def _read_changes(path: Path) -> Sequence[RegistryChange]:
    if path not in _changes:
        _changes.clear()
        _changes[path] = [RegistryChange(*each) for each in json.loads(path.read_bytes())]
    return _changes[path]
