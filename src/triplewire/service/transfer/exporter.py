"""Export: events of the lake into a file, page by page, in the order of their positions.

An export can be interrupted anywhere and resumed from the last page; the file has its final name only when it is
complete.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model.errors import BadRequest, Conflict, StorageFull
from triplewire.service.transfer.formats import FileEncoding, FileFormat, StateFile
from triplewire.service.transfer.sinks import ParquetSink, Sink, StreamSink, TextSink, TextWriter

EXPORT_EVENTS: Final = 50_000
"""Events, or positions, that an export reads at once, and after which it can go on."""


# Selections: which events of a lake go out.


@dataclass(frozen=True)
class Selection:
    """All events, or those that fit. Times, in microseconds, are when it happened: `begins <= time < ends`; positions
    lie in `after < position <= upto`."""

    streams: tuple[str, ...] = ()
    begins: int | None = None
    ends: int | None = None
    after: int = 0
    upto: int | None = None

    def __post_init__(self) -> None:
        if self.begins is not None and self.ends is not None and self.begins >= self.ends:
            raise BadRequest("--from must lie before --to: nothing can be between them")
        if self.upto is not None and self.after >= self.upto:
            raise BadRequest("--after must lie before --through: nothing can be between them")

    def of(self, entries: pa.Table) -> pa.Table:
        """Those rows of a page that fit; positions were looked at when it was read."""
        wanted = [
            pc.field("stream").isin(list(self.streams)) if self.streams else None,
            pc.field("time") >= self.begins if self.begins is not None else None,
            pc.field("time") < self.ends if self.ends is not None else None,
        ]
        for each in wanted:
            entries = entries if each is None else entries.filter(each)
        return entries

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"streams": list(self.streams)}


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class EventPages(Protocol):
    """The events of a lake; `LakeEntries` is one."""

    def upto(self) -> int:
        """The position up to which it has every event."""

    def page(self, after: int, upto: int, limit: int) -> tuple[pa.Table, int]:
        """Events in the order of positions, and the position up to which these are all."""


@dataclass(frozen=True)
class ExportProgress:
    """How far an export has come: up to a position of `upto`, and what it has written."""

    after: int
    upto: int
    mark: int = 0
    events: int = 0
    quads: int = 0


@dataclass(frozen=True)
class Export:
    """What is asked for: which events, how they are written, and where to."""

    selection: Selection
    shape: FileEncoding
    path: Path
    headers: bool = True

    def to_json(self) -> dict[str, Any]:
        return {"selection": self.selection.to_json(), **asdict(self.shape), "headers": self.headers}


def export_to_file(
    pages: EventPages, export: Export, *, resume: bool = False, overwrite: bool = False
) -> Iterator[ExportProgress]:
    """Write the file, and tell after each page how far it is. It has its name once it is whole; before, it lies beside
    it as `….part`, with `….state`, from which a later call goes on if it may `resume`.

    Raises Conflict where a file, or a part of another export, is in the way and may not be overwritten; StorageFull.
    """
    kept = StateFile(export.path.with_name(export.path.name + ".state"))
    sink = _sink(export)
    if overwrite and not resume:
        kept.forget()
        sink.discard()
    reached = _find_start(export, kept, pages, resume=resume)
    if resume and _is_complete(export, reached):
        kept.forget()
        yield reached
        return
    if export.path.exists() and not overwrite:
        raise Conflict(f"{export.path} is there already; --overwrite puts the export in its place")
    with _translate_disk_full(export.path):
        kept.keep({"asked": export.to_json(), **asdict(reached)})
        sink.begin(reached.mark)
        for each in _write_pages(pages, export.selection, sink, reached):
            kept.keep({"asked": export.to_json(), **asdict(each)})
            reached = each
            yield each
        sink.finish()
    kept.forget()
    yield reached


def export_to_stream(pages: EventPages, export: Export, out: BinaryIO) -> Iterator[ExportProgress]:
    """The same to a stream, which cannot go on later."""
    sink = StreamSink(out, TextWriter(export.shape.format, headers=export.headers))
    sink.begin(0)
    yield from _write_pages(pages, export.selection, sink, _start(export, pages))
    sink.finish()


def _write_pages(
    pages: EventPages, selection: Selection, sink: Sink, reached: ExportProgress
) -> Iterator[ExportProgress]:
    while reached.after < reached.upto:
        # A page reads what lies in a stretch of positions, and not all that comes after.
        end = min(reached.upto, reached.after + EXPORT_EVENTS)
        page, after = pages.page(reached.after, end, EXPORT_EVENTS)
        reached = replace(reached, after=after)
        found = selection.of(page)
        if found.num_rows:
            quads = found.num_rows + pc.sum(pc.count_substring(found["text"], "\n")).as_py()
            events = reached.events + found.num_rows
            reached = replace(reached, mark=sink.write(found), events=events, quads=reached.quads + quads)
        yield reached


def _find_start(export: Export, kept: StateFile, pages: EventPages, *, resume: bool) -> ExportProgress:
    """From where an export goes on, or begins."""
    state = kept.load()
    if state is None:
        return _start(export, pages)
    if not resume:
        raise Conflict(f"{export.path}.part is left of an export; --resume goes on with it, --overwrite begins anew")
    if state.pop("asked") != export.to_json():
        raise Conflict(f"{export.path}.part is of another selection or format; --overwrite begins anew")
    return ExportProgress(**state)


def _start(export: Export, pages: EventPages) -> ExportProgress:
    stored, upto = pages.upto(), export.selection.upto
    return ExportProgress(export.selection.after, stored if upto is None else min(upto, stored))


def _is_complete(export: Export, reached: ExportProgress) -> bool:
    """Was it cut off after the file had its name, and before that was noted?"""
    begun, part = Path(f"{export.path}.state").exists(), Path(f"{export.path}.part").exists()
    return export.path.exists() and begun and not part and reached.after >= reached.upto


def _sink(export: Export) -> Sink:
    if export.shape.format is FileFormat.PARQUET:
        return ParquetSink(export.path)
    writer = TextWriter(export.shape.format, headers=export.headers)
    return TextSink(export.path, writer, zipped=export.shape.zipped)


@contextmanager
def _translate_disk_full(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        told = os.strerror(error.errno)
        raise StorageFull(f"{path}: {told}; what was written stays, and --resume goes on when there is room") from error
