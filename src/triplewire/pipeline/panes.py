"""Panes: windows of continuous queries as functions from frame to frame.

```
log ──▶ sort out ──▶ exchange ──▶ turn ──▶ driver ──▶ log
        by stream    by place
```

A query belongs to one place. Every place has its turn in every batch, also when nothing came for it, because time
goes
on. What it was given it writes to its ledger before it tells what follows.
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

from triplewire.model import Erasure
from triplewire.model.erasure import blank_erased
from triplewire.ongoing.ledgers import START, Ledger, Moment
from triplewire.ongoing.places import Turn
from triplewire.ongoing.windows.backgrounds import Background
from triplewire.ongoing.windows.places import INPUTS, Figures, WindowPlace
from triplewire.ongoing.windows.plans import plan
from triplewire.ongoing.windows.results import RESULTS
from triplewire.pipeline import shipments
from triplewire.pipeline.blocks import unpacked
from triplewire.pipeline.costs import Costs, spending
from triplewire.pipeline.shipments import SENT, here, inputs, reported, sent, told
from triplewire.pipeline.workers import forget_others, keep, lighten
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import QUERY

SETTLED_TURNS = 64
"""Turns of a place after which all that it has is written down at once: to go through them again takes a second or
two."""

_TURN = b"turn"
_LEDGER = "windows-"
"""How the names of ledgers begin, before the numbers of places."""


@dataclass(frozen=True)
class Task:
    """What workers need to know of a batch: where they find the queries, and the ledgers; how many places there are;
    and what there is beside windows."""

    queries: Path
    ledgers: Path
    places: int
    turn: Turn
    open_background: Callable[[], Background]

    @property
    def answers(self) -> Path:
        """Where answers lie that are many."""
        return self.ledgers / "window-answers"


@dataclass(frozen=True)
class Report:
    """What a place says of itself after a turn: how much it has, and when it is to have its next at the latest."""

    place: int
    figures: Figures
    due: int | None


@dataclass
class _Kept:
    """A place of this worker, the batch before which it is as it was, and the queries that it knows."""

    place: WindowPlace
    before: int
    queries: Path | None = None
    known: frozenset[str] = frozenset()


_places: dict[Path, _Kept] = {}
"""Of this worker process, by their ledgers."""

_changes: dict[Path, Sequence[RegistryChange]] = {}
"""Likewise, what brought queries, by the file that it was read from."""


def place_of(query: str, places: int) -> int:
    """Where a query belongs."""
    return crc32(query.encode()) % places


def turned(blocks: DataFrame, task: Task, costs: Costs) -> DataFrame:
    """From a frame of `BLOCKS` to one of `SENT`, all of whose blocks are results or reports."""
    schema = from_arrow_schema(SENT)
    sorted_out = blocks.mapInArrow(partial(_sort_out, task), schema)
    return sorted_out.repartitionById(task.places, "place").mapInArrow(partial(_turn, task, costs), schema)


def collected(shipped: DataFrame, task: Task) -> tuple[pa.Table, list[Report]]:
    """In the driver: all results, and what places say."""
    results, reports = shipments.collected(shipped, RESULTS, task.answers)
    return results, [each for each in reports if isinstance(each, Report)]


def renew(before: Path, after: Path, batch: int, erasures: Sequence[Erasure]) -> None:
    """Write down anew, in another place, what was given to places before a batch, without what is being erased. Events
    of which nothing is left stay as events that say nothing: windows that count have counted them."""
    for folder in before.glob(f"{_LEDGER}*"):
        past = Ledger(folder).since(START, (batch, 0))
        for moment, table in zip(past.moments, past, strict=True):
            Ledger(after / folder.name).write(moment, blank_erased(table, erasures))


def _sort_out(task: Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Events to the places whose queries have windows over their streams."""
    lighten()
    wanted = [_streams(task, place) for place in range(task.places)]
    for entries in unpacked(batches):
        for place, streams in enumerate(wanted):
            found = entries.filter(pc.is_in(entries["stream"], streams))
            yield from sent(place, found.select(INPUTS.names))


def _streams(task: Task, place: int) -> pa.Array:
    own = [each for each in _read(task.queries) if place_of(each.key, task.places) == place]
    names = {name for each in own for name in plan(str((each.value or {})["text"])).streams}
    return pa.array(sorted(names), pa.string())


def _turn(task: Task, costs: Costs, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    lighten()
    table = pa.concat_tables([INPUTS.empty_table(), *(each for batch in batches for each in inputs(batch))])
    with spending(costs.ongoing):
        found = _told(task, here(), table.sort_by("position"))
    yield from found


def _told(task: Task, number: int, entries: pa.Table) -> list[pa.RecordBatch]:
    ledger, moment = Ledger(task.ledgers / f"{_LEDGER}{number}"), (task.turn.batch, 1)
    kept = _place(task, ledger, number)
    ledger.write(moment, entries.replace_schema_metadata({_TURN: _written(task.turn)}))
    results = kept.place.take(entries, task.turn)
    kept.before = task.turn.batch + 1
    report = Report(number, kept.place.figures, kept.place.due(task.turn.now))
    return [*told(results, task.answers), reported(report)]


def _place(task: Task, ledger: Ledger, number: int) -> _Kept:
    """The place as it is before a batch, and knows the queries of the batch."""
    kept, batch = _places.get(ledger.path), task.turn.batch
    reached: Moment = START if kept is None or kept.before > batch else (kept.before - 1, 1)
    past = ledger.since(reached, (batch, 0))
    if kept is None or past.anew:
        kept = _Kept(WindowPlace(task.open_background()), 0)
    _learn(kept, task, number)
    for table in past:
        kept.place.restore(table, _turn_of(table, task.turn))
    if past.anew:
        # What was written down as a whole has queries that may have ended since.
        kept.queries, kept.known = None, kept.known | frozenset(kept.place.figures.held)
        _learn(kept, task, number)
    _settle(ledger, kept.place, batch)
    if ledger.path not in _places:
        forget_others(_places, ledger.path.parent)
        keep()
    _places[ledger.path] = kept
    return kept


def _learn(kept: _Kept, task: Task, number: int) -> None:
    """Which queries there are; those that are there no more have ended."""
    if kept.queries == task.queries:
        return
    own = [each for each in _read(task.queries) if place_of(each.key, task.places) == number]
    ids = frozenset(each.key for each in own)
    kept.place.learn(RegistryChange(task.turn.upto, QUERY, each, None) for each in sorted(kept.known - ids))
    kept.place.learn(own)
    kept.queries, kept.known = task.queries, ids


def _settle(ledger: Ledger, place: WindowPlace, batch: int) -> None:
    if batch and batch % SETTLED_TURNS == 0:
        ledger.settle(batch - 1, place.kept())
        ledger.trim(batch - 1)


def _written(turn: Turn) -> bytes:
    return json.dumps([turn.batch, turn.upto, turn.now]).encode()


def _turn_of(table: pa.Table, otherwise: Turn) -> Turn:
    metadata = table.schema.metadata or {}
    return Turn(*json.loads(metadata[_TURN])) if _TURN in metadata else otherwise


def _read(path: Path) -> Sequence[RegistryChange]:
    if path not in _changes:
        _changes.clear()
        _changes[path] = [RegistryChange(*each) for each in json.loads(path.read_bytes())]
    return _changes[path]
