"""Joins: the network of continuous queries as functions from frame to frame.

```
log ──▶ route ──▶ exchange ──▶ meet ──▶ exchange ──▶ meet ──▶ … ──▶ driver
                  by station   round 1  by station   round 2
```

What a station keeps in a round it writes to its ledger before it tells what follows. A worker that finds a station
of
its own behind makes it anew, or lets it catch up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from triplewire.config import limits
from triplewire.kernels.compiler import Int64
from triplewire.model import MATCHES
from triplewire.ongoing.learners import Program
from triplewire.ongoing.ledgers import START, Ledger, Moment
from triplewire.ongoing.network.emitting import ADDRESSES
from triplewire.ongoing.network.events import entries_of
from triplewire.ongoing.network.rows import ROWS
from triplewire.ongoing.network.stations import Router, Station, Ward, parted
from triplewire.ongoing.places import Turn
from triplewire.pipeline import shipments
from triplewire.pipeline.blocks import unpacked
from triplewire.pipeline.costs import Costs, spending
from triplewire.pipeline.shipments import SENT, here, inputs, passed, reported, sent, told
from triplewire.pipeline.workers import forget_others, keep, lighten

LIVE = 10**9
"""Rounds in which new events are taken in have numbers above this."""

DISORDER = 10_000_000
"""Microseconds by which an event may have been received before one at an earlier position: nothing that it may need is
forgotten before."""

SETTLED_BYTES = 16 * 1024 * 1024
"""What a ledger gathers, at least, before all that its station has is written down at once: it is read in a fifth of a
second."""


@dataclass(frozen=True)
class Task:
    """What workers need to know of a batch: where the program and the ledgers are, and how many stations there are."""

    program: Path
    ledgers: Path
    depth: int
    """The patterns of the longest chain."""
    stations: int
    turn: Turn
    base: int = LIVE
    """Rounds are counted from here on: those with the past of some queries come before the others of a batch."""
    past: int | None = None
    """The origin of those, where it is their past."""

    @property
    def answers(self) -> Path:
        """Where answers lie that are many."""
        return self.ledgers / "answers"


@dataclass(frozen=True)
class Report:
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
class Tally:
    """What came in, by predicate."""

    counts: Mapping[str, int]


@dataclass
class _Kept:
    """A station of this worker, as it was before a round, and what it has reached: a position, and a time."""

    station: Station
    before: Moment
    program: Path
    position: int = 0
    time: int = 0


_programs: dict[Path, Program] = {}
"""Of this worker process: the newest of each directory."""

_stations: dict[Path, _Kept] = {}
"""Likewise, by their ledgers."""


def joined(blocks: DataFrame, task: Task, costs: Costs) -> DataFrame:
    """From a frame of `BLOCKS` to one of `SENT`, all of whose blocks are matches or reports."""
    schema = from_arrow_schema(SENT)
    frame = blocks.mapInArrow(partial(_route, task, costs), schema)
    rounds = 1 if task.stations == 1 else max(1, task.depth - 1)
    for number in range(1, rounds + 1):
        frame = frame.repartitionById(task.stations, "place").mapInArrow(partial(_meet, task, number, costs), schema)
    return frame


def collected(shipped: DataFrame, task: Task) -> tuple[pa.Table, list[Report | Tally]]:
    """In the driver: all matches, and what stations and doors say."""
    matches, reports = shipments.collected(shipped, MATCHES, task.answers)
    return matches, [each for each in reports if isinstance(each, Report | Tally)]


def _route(task: Task, costs: Costs, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    lighten()
    program = _program(task.program)
    router = Router(program.plan)
    for entries in unpacked(batches):
        with spending(costs.ongoing):
            rows, answers = router.route(entries_of(entries, program.scopes, task.past))
            found = [*_by_station(rows, task.stations), *told(program.speech.matches(answers), task.answers)]
        yield from found
    yield reported(Tally(router.seen()))


def _meet(task: Task, number: int, costs: Costs, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    lighten()
    rows = [ROWS.empty_table()]
    for batch in batches:
        rows += inputs(batch)
        yield from passed(batch)
    table = pa.concat_tables(rows)
    if not table.num_rows:
        return
    with spending(costs.ongoing):
        found = _met(task, (task.turn.batch, task.base + number), here(), table)
    yield from found


def _met(task: Task, moment: Moment, number: int, rows: pa.Table) -> list[pa.RecordBatch]:
    ledger, program = Ledger(task.ledgers / str(number)), _program(task.program)
    kept = _station(task, ledger, number, moment)
    taken = kept.station.take(rows)
    ledger.write(moment, taken.kept)
    kept.before = (moment[0], moment[1] + 1)
    kept.position, kept.time = task.turn.upto, max(kept.time, pc.max(rows["ended"]).as_py())
    station = kept.station
    stores = (station.triples, station.partials)
    report = Report(
        number,
        sum(each.size for each in stores),
        sum(each.bytes for each in stores),
        np.bincount(np.maximum(taken.kept["address"].to_numpy(), 0), minlength=ADDRESSES),
        station.crowded(limits.ONGOING_ROWS),
        station.heavy(limits.HEAVY_ROWS) if task.stations > 1 and program.plan.spread[0] else (),
    )
    matches = program.speech.matches(taken.answers)
    return [*_by_station(taken.leaving, task.stations, number), *told(matches, task.answers), reported(report)]


def _station(task: Task, ledger: Ledger, number: int, moment: Moment) -> _Kept:
    """The station as it is before a round, going by the program of the batch."""
    program, kept = _program(task.program), _stations.get(ledger.path)
    reached = START if kept is None or kept.before > moment else _last(kept.before)
    past = ledger.since(reached, moment)
    if kept is None or past.anew:
        kept = _Kept(Station(program.plan, Ward(number, task.stations)), START, task.program)
    elif kept.program != task.program:
        kept.station.adopt(program.plan)
        kept.program = task.program
    for table in past:
        kept.station.restore(table)
    # A program for the past of some queries knows nothing of the others: nothing is forgotten by it.
    if task.past is None and reached[0] < moment[0] and all(each[0] < moment[0] for each in past.moments):
        kept.station.expire(kept.position, kept.time - DISORDER)
        _settle(ledger, kept.station, moment[0] - 1)
    if ledger.path not in _stations:
        forget_others(_stations, ledger.path.parent)
        keep()
    kept.before = moment
    _stations[ledger.path] = kept
    return kept


def _last(before: Moment) -> Moment:
    """The round before one: what came after it is not known here."""
    return before[0], before[1] - 1


def _settle(ledger: Ledger, station: Station, batch: int) -> None:
    """Write down all that the station has after a batch, which is done, where much has come since that was done."""
    whole, since = ledger.size(batch)
    if since > max(whole, SETTLED_BYTES):
        ledger.settle(batch, station.kept())
        ledger.trim(batch)


def _by_station(rows: pa.Table, stations: int, but: int | None = None) -> Iterator[pa.RecordBatch]:
    for station, part in parted(rows, stations, but):
        yield from sent(station, part)


def _program(path: Path) -> Program:
    """What a batch goes by. One is read once in a worker."""
    if path not in _programs:
        found = Program.from_bytes(path.read_bytes())
        for other in [each for each in _programs if each.parent == path.parent]:
            del _programs[other]
        _programs[path] = found
        keep()
    return _programs[path]
