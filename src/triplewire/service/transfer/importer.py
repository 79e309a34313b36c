"""Import: events of a file into a broker, a batch at a time, each stored once.

The idempotency key of a batch begins with the name of the import, so that a batch which was published before an
interruption is not stored again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import uuid4

from triplewire.model import StreamEvent
from triplewire.model.errors import Conflict, DuplicateId, InputError, Unavailable
from triplewire.rdf.headers import extensions_to_json
from triplewire.service.transfer import readers
from triplewire.service.transfer.events import (
    FILE_START,
    EventPosition,
    FileEvent,
    FileReader,
    ImportFault,
    read_events,
)
from triplewire.service.transfer.formats import FileEncoding, FileFormat, StateFile
from triplewire.service.transfer.readers import ParquetReader, TextReader

IMPORT_EVENTS: Final = 5_000
"""Events that an import publishes at once, of at most as many bytes as it reads: a transaction of some 50 ms, after
which it can go on."""

IMPORT_ATTEMPTS: Final = 5
"""How often an import publishes the same events before it gives up where the broker does not answer. It waits a second,
then twice as long each time."""


class PublishTarget(Protocol):
    """Where events go; `Client` is one."""

    def publish_addressed(self, events: Iterable[StreamEvent], key: str | None = None) -> dict[str, Any]:
        """All of them, in order, or none; once for a key."""


@dataclass(frozen=True)
class Import:
    """What is asked for: a file, how it is written, and the stream for its events in place of theirs."""

    path: Path
    shape: FileEncoding
    stream: str | None = None

    def to_json(self) -> dict[str, Any]:
        found = self.path.stat()
        return {**asdict(self.shape), "stream": self.stream, "size": found.st_size, "changed": found.st_mtime_ns}


@dataclass(frozen=True)
class ImportProgress:
    """How far an import has come. `name` is its own, and begins the key of each batch."""

    name: str
    batches: int = 0
    mark: EventPosition = FILE_START
    events: int = 0
    quads: int = 0
    faults: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ImportProgress:
        return cls(**{**value, "mark": EventPosition.from_json(value["mark"])})


@dataclass(frozen=True)
class ImportBatch:
    """Events that are published together, and what is wrong up to where the next begin."""

    events: list[FileEvent]
    faults: list[ImportFault]


def open_reader(wanted: Import) -> FileReader:
    """Raises InputError for a file that is not what it should be."""
    if wanted.shape.format is FileFormat.PARQUET:
        return ParquetReader(wanted.path)
    return TextReader(wanted.path, zipped=wanted.shape.zipped, trig=wanted.shape.format is FileFormat.TRIG)


def find_faults(wanted: Import) -> Iterator[ImportFault]:
    """All that is wrong in the file; nothing is published."""
    return (
        each for each in read_events(open_reader(wanted), FILE_START, wanted.stream) if isinstance(each, ImportFault)
    )


def open_state(path: Path) -> StateFile:
    return StateFile(path.with_name(path.name + ".import"))


def start_import(wanted: Import, kept: StateFile, *, resume: bool) -> ImportProgress:
    """Where an import begins, or goes on. Raises Conflict where one was cut off and is not to go on, or is of something
    else."""
    state = kept.load()
    if state is None:
        return ImportProgress(uuid4().hex)
    if not resume:
        raise Conflict(
            f"an import of {wanted.path} was cut off; --resume goes on with it, --restart publishes all of it again"
        )
    if state.pop("asked") != wanted.to_json():
        raise Conflict(f"{wanted.path}, or what is asked for, has changed since the import was cut off; see --restart")
    return ImportProgress.from_json(state["reached"])


def import_file(
    broker: PublishTarget,
    wanted: Import,
    progress: ImportProgress,
    *,
    kept: StateFile | None,
    tell: Callable[[ImportFault], None],
    wait: Callable[[float], None],
) -> Iterator[ImportProgress]:
    """Publish what follows, and tell after each batch how far it is; `tell` hears of each fault, which is passed over.

    `kept` has the state from before the first batch until after the last. Each batch has a key of its own that is made
    of what it is: who is cut off anywhere publishes the same batch with the same key again. Raises Unavailable when the
    broker does not answer in several attempts, between which it waits.
    """
    _keep(kept, wanted, progress)
    for batch in _batches(read_events(open_reader(wanted), progress.mark, wanted.stream)):
        for fault in batch.faults:
            tell(fault)
        if batch.events:
            _publish(broker, batch, f"{progress.name} {progress.batches}", wait)
        progress = _after(progress, batch)
        _keep(kept, wanted, progress)
        yield progress
    if kept is not None:
        kept.forget()


def _after(progress: ImportProgress, batch: ImportBatch) -> ImportProgress:
    return replace(
        progress,
        batches=progress.batches + 1,
        mark=batch.events[-1].after if batch.events else progress.mark,
        faults=progress.faults + len(batch.faults),
        events=progress.events + len(batch.events),
        quads=progress.quads + sum(each.quads for each in batch.events),
    )


def _keep(kept: StateFile | None, wanted: Import, progress: ImportProgress) -> None:
    if kept is not None:
        kept.keep({"asked": wanted.to_json(), "reached": progress.to_json()})


def _batches(found: Iterable[FileEvent | ImportFault]) -> Iterator[ImportBatch]:
    """Where a batch ends depends on nothing but its events. An id that comes again begins another: in one body they
    would be one event."""
    taken: list[FileEvent] = []
    faults: list[ImportFault] = []
    ids: set[str] = set()
    size = 0
    for each in found:
        if isinstance(each, ImportFault):
            faults.append(each)
            continue
        event = each.addressed.event
        if taken and (len(taken) >= IMPORT_EVENTS or size > readers.IMPORT_BYTES or event.id in ids):
            line = taken[-1].after.line
            yield ImportBatch(taken, [each for each in faults if each.line < line])
            taken, faults, ids, size = [], [each for each in faults if each.line >= line], set(), 0
        taken.append(each)
        ids.add(event.id)
        size += len(event.text) + each.quads * len(event.id) + len(extensions_to_json(event.headers.extensions) or "")
    if taken or faults:
        yield ImportBatch(taken, faults)


def _publish(broker: PublishTarget, batch: ImportBatch, key: str, wait: Callable[[float], None]) -> None:
    for attempt in range(IMPORT_ATTEMPTS):
        try:
            broker.publish_addressed([each.addressed for each in batch.events], key)
        except Unavailable:
            if attempt == IMPORT_ATTEMPTS - 1:
                raise
            wait(2.0**attempt)
        except (InputError, DuplicateId) as error:
            first, last = batch.events[0].addressed.event.id, batch.events[-1].addressed.event.id
            raise InputError(f"the broker took none of the events {first} to {last}: {error}") from error
        else:
            return
