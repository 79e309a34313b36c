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
from triplewire.model.clock import Backoff
from triplewire.model.errors import Conflict, DuplicateId, InputError, Unavailable
from triplewire.rdf.headers import extensions_to_json
from triplewire.rdf.parser import EVENT_QUADS
from triplewire.service.transfer.events import (
    FILE_START,
    EventPosition,
    FileEvent,
    FileReader,
    ImportFault,
    read_events,
)
from triplewire.service.transfer.formats import FileEncoding, FileFormat, StateFile
from triplewire.service.transfer.readers import IMPORT_BYTES, ParquetReader, TextReader

IMPORT_EVENTS: Final = 5_000
"""Events that an import publishes at once, of at most as many bytes as it reads: a transaction of some 50 ms, after
which it can resume."""

IMPORT_ATTEMPTS: Final = 5
"""Attempts to publish the same events to a broker that does not answer. The first pause is a second, and each is twice
as long as the one before."""

_BACKOFF = Backoff(first=1.0, jitter=0)


class PublishTarget(Protocol):
    """Takes events; `Client` is one."""

    def publish_addressed(self, events: Iterable[StreamEvent], key: str | None = None) -> dict[str, Any]:
        """Publish all of them, in order, or none; once for a key."""


@dataclass(frozen=True)
class ImportLimits:
    """Bytes that are read at once, events of one batch, quads of one event, and attempts to publish a batch."""

    bytes: int = IMPORT_BYTES
    events: int = IMPORT_EVENTS
    quads: int = EVENT_QUADS
    attempts: int = IMPORT_ATTEMPTS


@dataclass(frozen=True)
class Import:
    """The request for an import: a file, its encoding, and the stream that replaces those of its events."""

    path: Path
    encoding: FileEncoding
    stream: str | None = None
    limits: ImportLimits = ImportLimits()

    def to_json(self) -> dict[str, Any]:
        found = self.path.stat()
        return {**asdict(self.encoding), "stream": self.stream, "size": found.st_size, "changed": found.st_mtime_ns}


@dataclass(frozen=True)
class ImportProgress:
    """The progress of an import. Its `name` begins the key of each batch; `position` is that of the next event."""

    name: str
    batches: int = 0
    position: EventPosition = FILE_START
    events: int = 0
    quads: int = 0
    faults: int = 0

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ImportProgress:
        return cls(**{**value, "position": EventPosition.from_json(value["position"])})


@dataclass(frozen=True)
class ImportBatch:
    """Events that are published together, and the faults before the next batch."""

    events: list[FileEvent]
    faults: list[ImportFault]


def open_reader(wanted: Import) -> FileReader:
    """Raises InputError for a file that is not what it should be."""
    encoding = wanted.encoding
    if encoding.format is FileFormat.PARQUET:
        return ParquetReader(wanted.path)
    trig = encoding.format is FileFormat.TRIG
    return TextReader(wanted.path, zipped=encoding.zipped, trig=trig, block_bytes=wanted.limits.bytes)


def find_faults(wanted: Import) -> Iterator[ImportFault]:
    """Yield all faults of the file; nothing is published."""
    return (each for each in _read(wanted, FILE_START) if isinstance(each, ImportFault))


def _read(wanted: Import, start: EventPosition) -> Iterator[FileEvent | ImportFault]:
    return read_events(open_reader(wanted), start, wanted.stream, wanted.limits.quads)


def open_state(path: Path) -> StateFile:
    return StateFile(path.with_name(path.name + ".import"))


def start_import(wanted: Import, file: StateFile, *, resume: bool) -> ImportProgress:
    """Return the progress with which an import starts. Raises Conflict if one was interrupted and is not to be resumed,
    or was of something else."""
    state = file.load()
    if state is None:
        return ImportProgress(uuid4().hex)
    if not resume:
        raise Conflict(
            f"an import of {wanted.path} was cut off; --resume goes on with it, --restart publishes all of it again"
        )
    if state.pop("asked") != wanted.to_json():
        raise Conflict(f"{wanted.path}, or what is asked for, has changed since the import was cut off; see --restart")
    return ImportProgress.from_json(state["progress"])


def import_file(
    broker: PublishTarget,
    wanted: Import,
    progress: ImportProgress,
    *,
    state: StateFile | None,
    report: Callable[[ImportFault], None],
    wait: Callable[[float], None],
) -> Iterator[ImportProgress]:
    """Publish the rest of the file, and yield the progress after each batch. Faults are reported and skipped.

    `state` holds the progress from before the first batch until after the last. The key of a batch follows from the
    file alone: after an interruption the same batch is published with the same key again. Raises Unavailable if the
    broker does not answer in several attempts, between which it waits.
    """
    _save(state, wanted, progress)
    for batch in _make_batches(_read(wanted, progress.position), wanted.limits):
        for fault in batch.faults:
            report(fault)
        if batch.events:
            _publish(broker, batch, f"{progress.name} {progress.batches}", wanted.limits.attempts, wait)
        progress = _advance(progress, batch)
        _save(state, wanted, progress)
        yield progress
    if state is not None:
        state.remove()


def _advance(progress: ImportProgress, batch: ImportBatch) -> ImportProgress:
    return replace(
        progress,
        batches=progress.batches + 1,
        position=batch.events[-1].after if batch.events else progress.position,
        faults=progress.faults + len(batch.faults),
        events=progress.events + len(batch.events),
        quads=progress.quads + sum(each.quads for each in batch.events),
    )


def _save(state: StateFile | None, wanted: Import, progress: ImportProgress) -> None:
    if state is not None:
        state.save({"asked": wanted.to_json(), "progress": asdict(progress)})


def _make_batches(found: Iterable[FileEvent | ImportFault], limits: ImportLimits) -> Iterator[ImportBatch]:
    """The end of a batch depends on nothing but its events. An id that is repeated begins another batch: in one body
    both would be one event."""
    taken: list[FileEvent] = []
    faults: list[ImportFault] = []
    ids: set[str] = set()
    size = 0
    for each in found:
        if isinstance(each, ImportFault):
            faults.append(each)
            continue
        event = each.addressed.event
        if taken and (len(taken) >= limits.events or size > limits.bytes or event.id in ids):
            line = taken[-1].after.line
            yield ImportBatch(taken, [each for each in faults if each.line < line])
            taken, faults, ids, size = [], [each for each in faults if each.line >= line], set(), 0
        taken.append(each)
        ids.add(event.id)
        size += len(event.text) + each.quads * len(event.id) + len(extensions_to_json(event.headers.extensions) or "")
    if taken or faults:
        yield ImportBatch(taken, faults)


def _publish(broker: PublishTarget, batch: ImportBatch, key: str, attempts: int, wait: Callable[[float], None]) -> None:
    events = [each.addressed for each in batch.events]
    for attempt in range(1, attempts + 1):
        try:
            broker.publish_addressed(events, key)
        except Unavailable:
            if attempt == attempts:
                raise
            wait(_BACKOFF.seconds(attempt))
        except (InputError, DuplicateId) as error:
            first, last = events[0].event.id, events[-1].event.id
            raise InputError(f"the broker took none of the events {first} to {last}: {error}") from error
        else:
            return
