"""Exports: events of the lake into a file, page by page, in the order of their positions."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.config import limits
from triplewire.model.errors import Conflict, StorageFull
from triplewire.transfer.formats import Format, Shape
from triplewire.transfer.selections import Selection
from triplewire.transfer.sinks import ParquetSink, Sink, StreamSink, TextSink
from triplewire.transfer.states import StateFile
from triplewire.transfer.texts import TextWriter

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Pages(Protocol):
    """The events of a lake; `LakeEntries` is one."""

    def upto(self) -> int:
        """The position up to which it has every event."""

    def page(self, after: int, upto: int, limit: int) -> tuple[pa.Table, int]:
        """Events in the order of positions, and the position up to which these are all."""


@dataclass(frozen=True)
class Reached:
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
    shape: Shape
    path: Path
    headers: bool = True

    def to_json(self) -> dict[str, Any]:
        return {"selection": self.selection.to_json(), **asdict(self.shape), "headers": self.headers}


def export_to_file(pages: Pages, export: Export, *, resume: bool = False, overwrite: bool = False) -> Iterator[Reached]:
    """Write the file, and tell after each page how far it is. It has its name once it is whole; before, it lies beside
    it as `….part`, with `….state`, from which a later call goes on if it may `resume`.

    Raises Conflict where a file, or a part of another export, is in the way and may not be overwritten; StorageFull.
    """
    kept = StateFile(export.path.with_name(export.path.name + ".state"))
    sink = _sink(export)
    if overwrite and not resume:
        kept.forget()
        sink.discard()
    reached = _begun(export, kept, pages, resume=resume)
    if resume and _named(export, reached):
        kept.forget()
        yield reached
        return
    if export.path.exists() and not overwrite:
        raise Conflict(f"{export.path} is there already; --overwrite puts the export in its place")
    with _told_if_full(export.path):
        kept.keep({"asked": export.to_json(), **asdict(reached)})
        sink.begin(reached.mark)
        for each in _written(pages, export.selection, sink, reached):
            kept.keep({"asked": export.to_json(), **asdict(each)})
            reached = each
            yield each
        sink.finish()
    kept.forget()
    yield reached


def export_to_stream(pages: Pages, export: Export, out: BinaryIO) -> Iterator[Reached]:
    """The same to a stream, which cannot go on later."""
    sink = StreamSink(out, TextWriter(export.shape.format, headers=export.headers))
    sink.begin(0)
    yield from _written(pages, export.selection, sink, _start(export, pages))
    sink.finish()


def _written(pages: Pages, selection: Selection, sink: Sink, reached: Reached) -> Iterator[Reached]:
    while reached.after < reached.upto:
        # A page reads what lies in a stretch of positions, and not all that comes after.
        end = min(reached.upto, reached.after + limits.EXPORT_EVENTS)
        page, after = pages.page(reached.after, end, limits.EXPORT_EVENTS)
        reached = replace(reached, after=after)
        found = selection.of(page)
        if found.num_rows:
            quads = found.num_rows + pc.sum(pc.count_substring(found["text"], "\n")).as_py()
            events = reached.events + found.num_rows
            reached = replace(reached, mark=sink.write(found), events=events, quads=reached.quads + quads)
        yield reached


def _begun(export: Export, kept: StateFile, pages: Pages, *, resume: bool) -> Reached:
    """From where an export goes on, or begins."""
    state = kept.load()
    if state is None:
        return _start(export, pages)
    if not resume:
        raise Conflict(f"{export.path}.part is left of an export; --resume goes on with it, --overwrite begins anew")
    if state.pop("asked") != export.to_json():
        raise Conflict(f"{export.path}.part is of another selection or format; --overwrite begins anew")
    return Reached(**state)


def _start(export: Export, pages: Pages) -> Reached:
    stored, upto = pages.upto(), export.selection.upto
    return Reached(export.selection.after, stored if upto is None else min(upto, stored))


def _named(export: Export, reached: Reached) -> bool:
    """Was it cut off after the file had its name, and before that was noted?"""
    begun, part = Path(f"{export.path}.state").exists(), Path(f"{export.path}.part").exists()
    return export.path.exists() and begun and not part and reached.after >= reached.upto


def _sink(export: Export) -> Sink:
    if export.shape.format is Format.PARQUET:
        return ParquetSink(export.path)
    writer = TextWriter(export.shape.format, headers=export.headers)
    return TextSink(export.path, writer, zipped=export.shape.zipped)


@contextmanager
def _told_if_full(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        told = os.strerror(error.errno)
        raise StorageFull(f"{path}: {told}; what was written stays, and --resume goes on when there is room") from error
