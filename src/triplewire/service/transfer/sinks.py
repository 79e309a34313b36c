"""Sinks of an export: text files, standard output and Parquet.

N-Quads and TriG are made of the text in the lake by one SQL expression a page. No quad is parsed: terms are canonical
N-Triples, which both formats take unchanged.
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.config.files import sync
from triplewire.model.errors import Conflict
from triplewire.model.terms import TW, XSD
from triplewire.service.transfer.formats import FileFormat
from triplewire.sparql import explode, to_sql
from triplewire.storage.lake.data_files import QUADS, connect_duckdb

_ESCAPED = r"""replace(replace({0}, '\', '\\'), '"', '\"')"""
_INSTANT = r"regexp_replace(strftime(make_timestamp({0}), '%Y-%m-%dT%H:%M:%S.%f'), '\.?0*$', '') || 'Z'"

_VALUES: Mapping[str, str] = {
    "stream": _ESCAPED.format("stream"),
    "source": _ESCAPED.format("source"),
    "application": _ESCAPED.format("application"),
    "time": _INSTANT.format("time"),
    "received": _INSTANT.format("received"),
    "extensions": _ESCAPED.format("extensions"),
}
_TIMES = ("time", "received")

HEADS: Mapping[FileFormat, bytes] = {
    FileFormat.NQUADS: b"",
    FileFormat.TRIG: f"@prefix tw: <{TW}> .\n@prefix xsd: <{XSD}> .\n".encode(),
}
"""The beginning of a file with headers."""


class TextWriter:
    """Writes pages of entries in one of the formats. Belongs to one thread."""

    def __init__(self, format: FileFormat, *, headers: bool) -> None:
        self._duck = connect_duckdb()
        header = _HEADERS[format] if headers else "''"
        self._sql = f"SELECT {header} || {_QUADS[format]} AS text FROM entries"
        self.head = HEADS[format] if headers else b""

    def write(self, entries: pa.Table) -> memoryview:
        self._duck.register("entries", entries)
        texts = pa.table(self._duck.sql(self._sql))["text"].cast(pa.large_string()).combine_chunks()
        self._duck.unregister("entries")
        return _view_bytes(texts)


def _view_bytes(texts: pa.LargeStringArray) -> memoryview:
    """Arrow holds the texts of an array next to one another, so that they need not be joined."""
    texts = texts.chunk(0) if isinstance(texts, pa.ChunkedArray) else texts
    if not len(texts):
        return memoryview(b"")
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)
    return memoryview(data)[ends[texts.offset] : ends[texts.offset + len(texts)]]


def _nquads_header(name: str) -> str:
    type = f"^^<{XSD}dateTime>" if name in _TIMES else ""
    return f"""coalesce('<' || event || '> <{TW}{name}> "' || {_VALUES[name]} || '"{type} .' || chr(10), '')"""


def _trig_header(name: str) -> str:
    """A predicate of the event; the first is that of the stream, which is always there."""
    type, separator = "^^xsd:dateTime" if name in _TIMES else "", "" if name == "stream" else " ;"
    return f"""coalesce('{separator} tw:{name} "' || {_VALUES[name]} || '"{type}', '')"""


_HEADERS = {
    FileFormat.NQUADS: " || ".join(map(_nquads_header, _VALUES)),
    FileFormat.TRIG: f"'<' || event || '>' || {' || '.join(map(_trig_header, _VALUES))} || ' .' || chr(10)",
}
_SPACED = "replace(text, chr(9), ' ')"
_END = "' <' || event || '> .' || chr(10)"
_QUADS: Mapping[FileFormat, str] = {
    FileFormat.NQUADS: f"replace({_SPACED}, chr(10), {_END}) || {_END}",
    FileFormat.TRIG: "'<' || event || '> {' || chr(10) || '  ' || "
    f"replace({_SPACED}, chr(10), ' .' || chr(10) || '  ') "
    "|| ' .' || chr(10) || '}' || chr(10)",
}


GZIP_LEVEL = 6
"""Of gzip: 1 is twice as fast and a quarter larger."""


class Sink(Protocol):
    """Takes pages of entries. Its size, which the sink counts in its own unit, grows with each page."""

    def begin(self, size: int) -> None:
        """Continue at a size; what was written later is discarded. Raises Conflict if the output is smaller."""

    def write(self, entries: pa.Table) -> int:
        """Return the size after the page, which is durable then."""

    def finish(self) -> None:
        """Give the output its final name. May be repeated after an interruption."""

    def discard(self) -> None:
        """Remove unfinished output."""


class TextSink:
    """A file of text, named `….part` until it is complete; its size is in bytes. Compressed, each page is a gzip member
    of its own, so that the file may be cut after any of them."""

    def __init__(self, path: Path, writer: TextWriter, *, zipped: bool) -> None:
        self._path, self._part = path, path.with_name(path.name + ".part")
        self._writer, self._zipped = writer, zipped

    def begin(self, size: int) -> None:
        if not size:
            self._part.write_bytes(b"")
            self._append(self._writer.head)
            return
        if not self._part.exists() or self._part.stat().st_size < size:
            raise Conflict(f"{self._part} is not what was left of the export; begin anew with --overwrite")
        with self._part.open("r+b") as file:
            file.truncate(size)

    def write(self, entries: pa.Table) -> int:
        return self._append(self._writer.write(entries))

    def finish(self) -> None:
        self._append(b"")
        self._part.replace(self._path)
        sync(self._path.parent)

    def discard(self) -> None:
        self._part.unlink(missing_ok=True)

    def _append(self, text: bytes | memoryview) -> int:
        """Return the length of the file, which is durable then."""
        with self._part.open("ab") as file:
            if text:
                file.write(gzip.compress(text, GZIP_LEVEL, mtime=0) if self._zipped else text)
            file.flush()
            os.fsync(file.fileno())
            return file.tell()


class StreamSink:
    """Standard output, which cannot be resumed."""

    def __init__(self, out: BinaryIO, writer: TextWriter) -> None:
        self._out, self._writer, self._size = out, writer, 0

    def begin(self, size: int) -> None:
        assert size == 0, "a stream cannot be resumed"
        self._out.write(self._writer.head)

    def write(self, entries: pa.Table) -> int:
        self._size += self._out.write(self._writer.write(entries))
        self._out.flush()
        return self._size

    def finish(self) -> None:
        self._out.flush()

    def discard(self) -> None:
        pass


class ParquetSink:
    """A Parquet file. Its footer comes last, so pages are small files in `….part` at first; their number is the size.
    In the end each becomes a row group, so that none splits an event."""

    def __init__(self, path: Path) -> None:
        self._path, self._parts = path, path.with_name(path.name + ".part")
        self._size = 0
        self._quads = _make_exploder()

    def begin(self, size: int) -> None:
        self._parts.mkdir(parents=True, exist_ok=True)
        self._size = size
        if missing := [part for part in map(self._part, range(size)) if not part.exists()]:
            raise Conflict(f"{missing[0]} is gone, so that the export cannot go on; begin anew with --overwrite")

    def write(self, entries: pa.Table) -> int:
        part = self._part(self._size)
        with part.open("wb") as file:
            pq.write_table(self._quads(entries), file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        sync(part.parent)
        self._size += 1
        return self._size

    def finish(self) -> None:
        whole = self._parts / "whole"
        with whole.open("wb") as file:
            with pq.ParquetWriter(file, QUADS, compression="zstd") as writer:
                for part in map(self._part, range(self._size)):
                    page = pq.read_table(part, schema=QUADS)
                    writer.write_table(page, row_group_size=max(1, page.num_rows))
            file.flush()
            os.fsync(file.fileno())
        whole.replace(self._path)
        sync(self._path.parent)
        self.discard()

    def discard(self) -> None:
        shutil.rmtree(self._parts, ignore_errors=True)

    def _part(self, number: int) -> Path:
        return self._parts / f"{number:09d}.parquet"


def _make_exploder() -> Callable[[pa.Table], pa.Table]:
    """Return a function from events to quads, a row each, in the columns of the lake's table and in order."""
    duck = connect_duckdb()
    sql = f"SELECT * FROM ({to_sql(explode('entries', columns=tuple(QUADS.names)), 'duckdb')}) ORDER BY position, quad"

    def explode_entries(entries: pa.Table) -> pa.Table:
        duck.register("entries", entries)
        quads = pa.table(duck.sql(sql)).cast(QUADS)
        duck.unregister("entries")
        return quads

    return explode_entries
