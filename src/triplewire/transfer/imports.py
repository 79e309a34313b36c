"""Imports: events of a file into a broker, a batch at a time, each of them once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from triplewire.codec.extensions import to_json
from triplewire.config import limits
from triplewire.model import StreamEvent
from triplewire.model.errors import Conflict, DuplicateId, InputError, Unavailable
from triplewire.transfer.events import BEGINNING, Found, Mark, Reader, events
from triplewire.transfer.faults import Fault
from triplewire.transfer.formats import Format, Shape
from triplewire.transfer.lines import TextReader
from triplewire.transfer.rows import RowReader
from triplewire.transfer.states import StateFile


class Broker(Protocol):
    """Where events go; `Client` is one."""

    def publish_addressed(self, events: Iterable[StreamEvent], key: str | None = None) -> dict[str, Any]:
        """All of them, in order, or none; once for a key."""


@dataclass(frozen=True)
class Import:
    """What is asked for: a file, how it is written, and the stream for its events in place of theirs."""

    path: Path
    shape: Shape
    stream: str | None = None

    def to_json(self) -> dict[str, Any]:
        found = self.path.stat()
        return {**asdict(self.shape), "stream": self.stream, "size": found.st_size, "changed": found.st_mtime_ns}


@dataclass(frozen=True)
class Progress:
    """How far an import has come. `name` is its own, and begins the key of each batch."""

    name: str
    batches: int = 0
    mark: Mark = BEGINNING
    events: int = 0
    quads: int = 0
    faults: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Progress:
        return cls(**{**value, "mark": Mark.from_json(value["mark"])})


@dataclass(frozen=True)
class Batch:
    """Events that are published together, and what is wrong up to where the next begin."""

    events: list[Found]
    faults: list[Fault]


def reader_of(wanted: Import) -> Reader:
    """Raises InputError for a file that is not what it should be."""
    if wanted.shape.format is Format.PARQUET:
        return RowReader(wanted.path)
    return TextReader(wanted.path, zipped=wanted.shape.zipped, trig=wanted.shape.format is Format.TRIG)


def faults_of(wanted: Import) -> Iterator[Fault]:
    """All that is wrong in the file; nothing is published."""
    return (each for each in events(reader_of(wanted), BEGINNING, wanted.stream) if isinstance(each, Fault))


def state_of(path: Path) -> StateFile:
    return StateFile(path.with_name(path.name + ".import"))


def begun(wanted: Import, kept: StateFile, *, resume: bool) -> Progress:
    """Where an import begins, or goes on. Raises Conflict where one was cut off and is not to go on, or is of something
    else."""
    state = kept.load()
    if state is None:
        return Progress(uuid4().hex)
    if not resume:
        raise Conflict(
            f"an import of {wanted.path} was cut off; --resume goes on with it, --restart publishes all of it again"
        )
    if state.pop("asked") != wanted.to_json():
        raise Conflict(f"{wanted.path}, or what is asked for, has changed since the import was cut off; see --restart")
    return Progress.from_json(state["reached"])


def import_file(
    broker: Broker,
    wanted: Import,
    progress: Progress,
    *,
    kept: StateFile | None,
    tell: Callable[[Fault], None],
    wait: Callable[[float], None],
) -> Iterator[Progress]:
    """Publish what follows, and tell after each batch how far it is; `tell` hears of each fault, which is passed over.

    `kept` has the state from before the first batch until after the last. Each batch has a key of its own that is made
    of what it is: who is cut off anywhere publishes the same batch with the same key again. Raises Unavailable when the
    broker does not answer in several attempts, between which it waits.
    """
    _keep(kept, wanted, progress)
    for batch in _batches(events(reader_of(wanted), progress.mark, wanted.stream)):
        for fault in batch.faults:
            tell(fault)
        if batch.events:
            _publish(broker, batch, f"{progress.name} {progress.batches}", wait)
        progress = _after(progress, batch)
        _keep(kept, wanted, progress)
        yield progress
    if kept is not None:
        kept.forget()


def _after(progress: Progress, batch: Batch) -> Progress:
    return replace(
        progress,
        batches=progress.batches + 1,
        mark=batch.events[-1].after if batch.events else progress.mark,
        faults=progress.faults + len(batch.faults),
        events=progress.events + len(batch.events),
        quads=progress.quads + sum(each.quads for each in batch.events),
    )


def _keep(kept: StateFile | None, wanted: Import, progress: Progress) -> None:
    if kept is not None:
        kept.keep({"asked": wanted.to_json(), "reached": progress.to_json()})


def _batches(found: Iterable[Found | Fault]) -> Iterator[Batch]:
    """Where a batch ends depends on nothing but its events. An id that comes again begins another: in one body they
    would be one event."""
    taken: list[Found] = []
    faults: list[Fault] = []
    ids: set[str] = set()
    size = 0
    for each in found:
        if isinstance(each, Fault):
            faults.append(each)
            continue
        event = each.addressed.event
        if taken and (len(taken) >= limits.IMPORT_EVENTS or size > limits.IMPORT_BYTES or event.id in ids):
            line = taken[-1].after.line
            yield Batch(taken, [each for each in faults if each.line < line])
            taken, faults, ids, size = [], [each for each in faults if each.line >= line], set(), 0
        taken.append(each)
        ids.add(event.id)
        size += len(event.text) + each.quads * len(event.id) + len(to_json(event.headers.extensions) or "")
    if taken or faults:
        yield Batch(taken, faults)


def _publish(broker: Broker, batch: Batch, key: str, wait: Callable[[float], None]) -> None:
    for attempt in range(limits.IMPORT_ATTEMPTS):
        try:
            broker.publish_addressed([each.addressed for each in batch.events], key)
        except Unavailable:
            if attempt == limits.IMPORT_ATTEMPTS - 1:
                raise
            wait(2.0**attempt)
        except (InputError, DuplicateId) as error:
            first, last = batch.events[0].addressed.event.id, batch.events[-1].addressed.event.id
            raise InputError(f"the broker took none of the events {first} to {last}: {error}") from error
        else:
            return
