"""The join stage: the join network of continuous queries as functions from frame to frame.

```
log ──▶ route ──▶ exchange ───▶ join ───▶ exchange ───▶ join ───▶ … ──▶ driver
                  by partition  round 1   by partition  round 2
```

A partition writes the rows that it keeps in a round to its changelog before it emits what follows. A worker whose
partition is behind rebuilds it, or lets it catch up.
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
from pyspark.sql.pandas.types import from_arrow_schema

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
from triplewire.continuous.state import BEFORE_ALL, BatchContext, BatchRound, StateChangelog
from triplewire.http.formats import notifications
from triplewire.kernels.compiler import Int64
from triplewire.model import MATCHES
from triplewire.spark.jobs import exchange
from triplewire.spark.jobs.exchange import (
    EXCHANGED,
    current_partition,
    pass_through,
    read_inputs,
    send_report,
    send_to_driver,
    send_to_partition,
    unpack_blocks,
)
from triplewire.spark.jobs.workers import CpuCosts, charge_cpu, drop_other_generations, freeze_heap, hide_pandas

HEAVY_ROWS: Final = 20_000
"""Triples under one key, such as all of one class, from which on they are spread over all stations."""


LIVE_ROUNDS = 10**9
"""Rounds in which new events are taken in have numbers above this."""

DISORDER = 10_000_000
"""Microseconds by which an event may have been received before one at an earlier position: nothing that it may need is
forgotten before."""

SNAPSHOT_BYTES = 16 * 1024 * 1024
"""What a ledger gathers, at least, before all that its station has is written down at once: it is read in a fifth of a
second."""


@dataclass(frozen=True)
class JoinTask:
    """What workers need to know of a batch: where the program and the ledgers are, and how many stations there are."""

    program: Path
    ledgers: Path
    depth: int
    """The patterns of the longest chain."""
    stations: int
    turn: BatchContext
    base: int = LIVE_ROUNDS
    """Rounds are counted from here on: those with the past of some queries come before the others of a batch."""
    past: int | None = None
    """The origin of those, where it is their past."""

    @property
    def answers(self) -> Path:
        """Where answers lie that are many."""
        return self.ledgers / "answers"


@dataclass(frozen=True)
class JoinReport:
    """What a station says of itself after a round: how much it has, and how many rows came to each address."""

    station: int
    rows: int
    bytes: int
    addresses: Int64
    crowded: Sequence[int] = ()
    """Nodes at which too much waits."""
    heavy: Sequence[int] = ()
    """Keys under which too much lies."""


@dataclass(frozen=True)
class PredicateCounts:
    """What came in, by predicate."""

    counts: Mapping[str, int]


@dataclass
class _WorkerPartition:
    """A station of this worker, as it was before a round, and what it has reached: a position, and a time."""

    station: JoinPartition
    before: BatchRound
    program: Path
    position: int = 0
    time: int = 0


_programs: dict[Path, NetworkProgram] = {}
"""Of this worker process: the newest of each directory."""

_partitions: dict[Path, _WorkerPartition] = {}
"""Likewise, by their ledgers."""


def run_join_rounds(blocks: DataFrame, task: JoinTask, costs: CpuCosts) -> DataFrame:
    """From a frame of `BLOCKS` to one of `SENT`, all of whose blocks are matches or reports."""
    schema = from_arrow_schema(EXCHANGED)
    frame = blocks.mapInArrow(partial(_route, task, costs), schema)
    rounds = 1 if task.stations == 1 else max(1, task.depth - 1)
    for number in range(1, rounds + 1):
        frame = frame.repartitionById(task.stations, "place").mapInArrow(
            partial(_join_partition, task, number, costs), schema
        )
    return frame


def collect_joins(shipped: DataFrame, task: JoinTask) -> tuple[pa.Table, list[JoinReport | PredicateCounts]]:
    """In the driver: all matches, and what stations and doors say."""
    matches, reports = exchange.collect_outputs(shipped, MATCHES, task.answers)
    return matches, [each for each in reports if isinstance(each, JoinReport | PredicateCounts)]


def _route(task: JoinTask, costs: CpuCosts, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    hide_pandas()
    program = _load_program(task.program)
    router = EventRouter(program.plan)
    for entries in unpack_blocks(batches):
        with charge_cpu(costs.ongoing):
            rows, answers = router.route(to_network_events(entries, program.scopes, task.past))
            found = [
                *_send_by_partition(rows, task.stations),
                *send_to_driver(program.speech.matches(answers), task.answers),
            ]
        yield from found
    yield send_report(PredicateCounts(router.seen()))


def _join_partition(
    task: JoinTask, number: int, costs: CpuCosts, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    hide_pandas()
    rows = [ROWS.empty_table()]
    for batch in batches:
        rows += read_inputs(batch)
        yield from pass_through(batch)
    table = pa.concat_tables(rows)
    if not table.num_rows:
        return
    with charge_cpu(costs.ongoing):
        found = _join_rows(task, (task.turn.batch, task.base + number), current_partition(), table)
    yield from found


def _join_rows(task: JoinTask, moment: BatchRound, number: int, rows: pa.Table) -> list[pa.RecordBatch]:
    ledger, program = StateChangelog(task.ledgers / str(number)), _load_program(task.program)
    kept = _load_partition(task, ledger, number, moment)
    taken = kept.station.take(rows)
    ledger.write(moment, taken.kept)
    kept.before = (moment[0], moment[1] + 1)
    kept.position, kept.time = task.turn.upto, max(kept.time, pc.max(rows["ended"]).as_py())
    station = kept.station
    stores = (station.triples, station.partials)
    report = JoinReport(
        number,
        sum(each.size for each in stores),
        sum(each.bytes for each in stores),
        np.bincount(np.maximum(taken.kept["address"].to_numpy(), 0), minlength=ADDRESSES),
        station.crowded(notifications.ONGOING_ROWS),
        station.heavy(HEAVY_ROWS) if task.stations > 1 and program.plan.spread[0] else (),
    )
    matches = program.speech.matches(taken.answers)
    return [
        *_send_by_partition(taken.leaving, task.stations, number),
        *send_to_driver(matches, task.answers),
        send_report(report),
    ]


def _load_partition(task: JoinTask, ledger: StateChangelog, number: int, moment: BatchRound) -> _WorkerPartition:
    """The station as it is before a round, going by the program of the batch."""
    program, kept = _load_program(task.program), _partitions.get(ledger.path)
    reached = BEFORE_ALL if kept is None or kept.before > moment else _round_before(kept.before)
    past = ledger.since(reached, moment)
    if kept is None or past.anew:
        kept = _WorkerPartition(
            JoinPartition(program.plan, PartitionBuckets(number, task.stations)), BEFORE_ALL, task.program
        )
    elif kept.program != task.program:
        kept.station.adopt(program.plan)
        kept.program = task.program
    for table in past:
        kept.station.restore(table)
    # A program for the past of some queries knows nothing of the others: nothing is forgotten by it.
    if task.past is None and reached[0] < moment[0] and all(each[0] < moment[0] for each in past.moments):
        kept.station.expire(kept.position, kept.time - DISORDER)
        _write_snapshot(ledger, kept.station, moment[0] - 1)
    if ledger.path not in _partitions:
        drop_other_generations(_partitions, ledger.path.parent)
        freeze_heap()
    kept.before = moment
    _partitions[ledger.path] = kept
    return kept


def _round_before(before: BatchRound) -> BatchRound:
    """The round before one: what came after it is not known here."""
    return before[0], before[1] - 1


def _write_snapshot(ledger: StateChangelog, station: JoinPartition, batch: int) -> None:
    """Write down all that the station has after a batch, which is done, where much has come since that was done."""
    whole, since = ledger.size(batch)
    if since > max(whole, SNAPSHOT_BYTES):
        ledger.settle(batch, station.kept())
        ledger.trim(batch)


def _send_by_partition(rows: pa.Table, stations: int, but: int | None = None) -> Iterator[pa.RecordBatch]:
    for station, part in split_by_partition(rows, stations, but):
        yield from send_to_partition(station, part)


def _load_program(path: Path) -> NetworkProgram:
    """What a batch goes by. One is read once in a worker."""
    if path not in _programs:
        found = NetworkProgram.from_bytes(path.read_bytes())
        for other in [each for each in _programs if each.parent == path.parent]:
            del _programs[other]
        _programs[path] = found
        freeze_heap()
    return _programs[path]
