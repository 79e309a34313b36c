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
"""Events, or positions, that an export reads at once, and after which it can resume."""


@dataclass(frozen=True)
class Selection:
    """All events, or those of some streams, with `begins <= time < ends` in microseconds and with
    `after < position <= through`. Raises BadRequest if nothing can be selected."""

    streams: tuple[str, ...] = ()
    begins: int | None = None
    ends: int | None = None
    after: int = 0
    through: int | None = None

    def __post_init__(self) -> None:
        if self.begins is not None and self.ends is not None and self.begins >= self.ends:
            raise BadRequest("--from must lie before --to: nothing can be between them")
        if self.through is not None and self.after >= self.through:
            raise BadRequest("--after must lie before --through: nothing can be between them")

    def filter(self, entries: pa.Table) -> pa.Table:
        """Return the rows of a page that fit; by position the page was chosen when it was read."""
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

    def head(self) -> int:
        """Return the position through which it has every event."""

    def page(self, after: int, through: int, limit: int) -> tuple[pa.Table, int]:
        """Return events in the order of positions, and the position through which these are all."""


@dataclass(frozen=True)
class ExportProgress:
    """The progress of an export: the position `after` which it continues, the last position, and the size, events and
    quads of its output."""

    after: int
    through: int
    size: int = 0
    events: int = 0
    quads: int = 0


@dataclass(frozen=True)
class Export:
    """The request for an export: which events, their encoding, and the file; `page_events` are read at once."""

    selection: Selection
    encoding: FileEncoding
    path: Path
    headers: bool = True
    page_events: int = EXPORT_EVENTS

    def to_json(self) -> dict[str, Any]:
        return {"selection": self.selection.to_json(), **asdict(self.encoding), "headers": self.headers}


def export_to_file(
    pages: EventPages, export: Export, *, resume: bool = False, overwrite: bool = False
) -> Iterator[ExportProgress]:
    """Write the file, and yield the progress after each page. It has its name once it is complete; before, it is beside
    it as `….part`, with `….state`, from which a later call may `resume`.

    Raises Conflict if the file, or a part of another export, exists and may not be overwritten; StorageFull.
    """
    state = StateFile(export.path.with_name(export.path.name + ".state"))
    sink = _make_sink(export)
    if overwrite and not resume:
        state.remove()
        sink.discard()
    progress = _find_start(export, state, pages, resume=resume)
    if resume and _is_complete(export, progress):
        state.remove()
        yield progress
        return
    if export.path.exists() and not overwrite:
        raise Conflict(f"{export.path} is there already; --overwrite puts the export in its place")
    with _translate_disk_full(export.path):
        state.save({"asked": export.to_json(), **asdict(progress)})
        sink.begin(progress.size)
        for each in _write_pages(pages, export, sink, progress):
            progress = each
            state.save({"asked": export.to_json(), **asdict(progress)})
            yield progress
        sink.finish()
    state.remove()
    yield progress


def export_to_stream(pages: EventPages, export: Export, out: BinaryIO) -> Iterator[ExportProgress]:
    """Write to a stream, which cannot be resumed."""
    sink = StreamSink(out, TextWriter(export.encoding.format, headers=export.headers))
    sink.begin(0)
    yield from _write_pages(pages, export, sink, _start(export, pages))
    sink.finish()


def _write_pages(pages: EventPages, export: Export, sink: Sink, progress: ExportProgress) -> Iterator[ExportProgress]:
    while progress.after < progress.through:
        # A page reads the files of a range of positions, and not of all that follow.
        end = min(progress.through, progress.after + export.page_events)
        page, after = pages.page(progress.after, end, export.page_events)
        progress = replace(progress, after=after)
        chosen = export.selection.filter(page)
        if chosen.num_rows:
            quads = chosen.num_rows + pc.sum(pc.count_substring(chosen["text"], "\n")).as_py()
            events = progress.events + chosen.num_rows
            progress = replace(progress, size=sink.write(chosen), events=events, quads=progress.quads + quads)
        yield progress


def _find_start(export: Export, file: StateFile, pages: EventPages, *, resume: bool) -> ExportProgress:
    state = file.load()
    if state is None:
        return _start(export, pages)
    if not resume:
        raise Conflict(f"{export.path}.part is left of an export; --resume goes on with it, --overwrite begins anew")
    if state.pop("asked") != export.to_json():
        raise Conflict(f"{export.path}.part is of another selection or format; --overwrite begins anew")
    return ExportProgress(**state)


def _start(export: Export, pages: EventPages) -> ExportProgress:
    stored, through = pages.head(), export.selection.through
    return ExportProgress(export.selection.after, stored if through is None else min(through, stored))


def _is_complete(export: Export, progress: ExportProgress) -> bool:
    """Whether it was interrupted after the file had its name, and before the state was removed."""
    begun, part = Path(f"{export.path}.state").exists(), Path(f"{export.path}.part").exists()
    return export.path.exists() and begun and not part and progress.after >= progress.through


def _make_sink(export: Export) -> Sink:
    if export.encoding.format is FileFormat.PARQUET:
        return ParquetSink(export.path)
    writer = TextWriter(export.encoding.format, headers=export.headers)
    return TextSink(export.path, writer, zipped=export.encoding.zipped)


@contextmanager
def _translate_disk_full(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        reason = os.strerror(error.errno)
        raise StorageFull(f"{path}: {reason}; --resume goes on when there is room") from error
