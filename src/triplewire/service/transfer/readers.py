"""File readers: N-Quads and TriG, plain or gzip, and Parquet with a row for each quad, read block by block."""

from __future__ import annotations

import gzip
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from triplewire.model.errors import BadRequest, InputError
from triplewire.rdf import N_QUADS, TRIG
from triplewire.rdf.checks import BODY_BYTES
from triplewire.rdf.headers import HeaderValues, check_header, extensions_from_json, extensions_to_json
from triplewire.rdf.splitting import DocumentPart, canonicalize, find_ends, split_lines, split_statements
from triplewire.service.transfer.events import (
    BlockPosition,
    EventRun,
    FileBlock,
    ImportFault,
    check_stream,
    make_fault,
    split_runs,
)

IMPORT_BYTES: Final = 1024 * 1024
"""Bytes that an import reads of a file at once; one event more may begin within them."""

_GZIP_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)
_DIRECTIVES = re.compile(rb"(?i)prefix|base|version")


class TextReader:
    """A file of text. Offsets are bytes of the text, and not of the file where that is compressed."""

    def __init__(self, path: Path, *, zipped: bool, trig: bool, block_bytes: int = IMPORT_BYTES) -> None:
        self._path, self._zipped = path, zipped
        self._syntax = TRIG if trig else N_QUADS
        self._split: Callable[[bytes, int], Iterator[DocumentPart]] = split_statements if trig else split_lines
        self._read = partial(_read_statements if trig else _read_lines, block_bytes)

    def size(self) -> int | None:
        return None if self._zipped else self._path.stat().st_size

    def read_blocks(self, start: BlockPosition) -> Iterator[FileBlock]:
        with cast(BinaryIO, gzip.open(self._path) if self._zipped else self._path.open("rb")) as file:
            try:
                file.seek(start.offset)
                text, rest = self._read(file, b"")
                while text:
                    yield self._parse_block(text, start)
                    start = self._find_end(text, start)
                    text, rest = self._read(file, rest)
            except _GZIP_ERRORS as error:
                fault = ImportFault(start.line, f"from here on the file cannot be unpacked: {error}")
                yield FileBlock(start, [], [fault])

    def _parse_block(self, text: bytes, start: BlockPosition) -> FileBlock:
        text = text if start.offset else text.removeprefix(BOM_UTF8)
        try:
            runs = self._parse_runs(DocumentPart(text, start.line), start.prologue.encode())
        except InputError:
            return self._parse_parts(text, start)
        numbered = list(_number_lines(runs, text, start.line))
        return FileBlock(start, numbered) if len(numbered) == len(runs) else self._parse_parts(text, start)

    def _parse_parts(self, text: bytes, start: BlockPosition) -> FileBlock:
        """Parse each part by itself, to find the faulty ones."""
        block, prologue = FileBlock(start, []), start.prologue.encode()
        for part in self._split(text, start.line):
            try:
                block.runs.extend(self._parse_runs(part, prologue))
                prologue = _join_directives(prologue, [part])
            except InputError as error:
                # A place counts from the first line of the prologue that was parsed with the part.
                before = prologue.count(b"\n") if error.place else 0
                block.faults.append(make_fault(error, part.line - before, part.body))
        return block

    def _parse_runs(self, part: DocumentPart, prologue: bytes) -> list[EventRun]:
        return list(split_runs(canonicalize(prologue + part.body, self._syntax).decode(), part.line))

    def _find_end(self, text: bytes, start: BlockPosition) -> BlockPosition:
        prologue = start.prologue.encode()
        if self._syntax is TRIG and _DIRECTIVES.search(text):
            prologue = _join_directives(prologue, self._split(text, start.line))
        return BlockPosition(start.offset + len(text), start.line + text.count(b"\n"), prologue.decode())


def _join_directives(prologue: bytes, parts: Iterable[DocumentPart]) -> bytes:
    """Return the directives that hold after some parts, each once."""
    for part in parts:
        body = part.body.strip() + b"\n"
        if part.directive and not prologue.endswith(body):
            prologue = prologue.replace(body, b"") + body
    return prologue


def _number_lines(runs: Iterable[EventRun], text: bytes, line: int) -> Iterator[EventRun]:
    """Yield the runs with the lines at which their events are named, up to the first that is named by a prefix."""
    at = 0
    for run in runs:
        here = text.find(f"<{run.id}>".encode(), at)
        if here < 0:
            return
        line, at = line + text.count(b"\n", at, here), here
        yield replace(run, line=line)


def _read_lines(block_bytes: int, file: BinaryIO, rest: bytes) -> tuple[bytes, bytes]:
    """Read the next lines, whole ones unless one is longer than any event."""
    return file.read(block_bytes) + file.readline(BODY_BYTES), rest


def _read_statements(block_bytes: int, file: BinaryIO, rest: bytes) -> tuple[bytes, bytes]:
    """Read the next statements, whole ones unless one is longer than any event; return them and the bytes that were
    read after them. At the end of the file that is everything. The result depends only on where they begin."""
    text, wanted = rest, 0
    while True:
        wanted += block_bytes
        text += file.read(max(0, wanted - len(text)))
        if len(text) < wanted:
            return text, b""
        if last := max(find_ends(text, whole=False), default=0):
            return text[:last], text[last:]
        if wanted > BODY_BYTES:
            return text, b""


TERMS = ("subject", "predicate", "object", "graph")
"""Required columns of a Parquet file, with terms as N-Triples writes them."""
TEXTS = ("stream", "source", "application", "extensions")
"""Optional columns, beside `time` and `position`. Adjacent rows with one position are one event."""

_PARQUET_ERRORS = (pa.ArrowException, OSError)


class ParquetReader:
    """A Parquet file. Offsets are row groups, lines are rows."""

    def __init__(self, path: Path) -> None:
        """Raises BadRequest for a file that is no Parquet, or has other columns."""
        try:
            self._file = pq.ParquetFile(path)
        except _PARQUET_ERRORS as error:
            raise BadRequest(f"{path} is no Parquet file, or not a whole one: {error}") from None
        _check_columns(self._file.schema_arrow, path)
        known = (*TERMS, *TEXTS, "time", "position")
        self._columns = [name for name in known if name in self._file.schema_arrow.names]

    def size(self) -> int | None:
        return int(self._file.num_row_groups)

    def read_blocks(self, start: BlockPosition) -> Iterator[FileBlock]:
        for number in range(start.offset, self._file.num_row_groups):
            start = BlockPosition(number, start.line)
            rows = self._file.metadata.row_group(number).num_rows
            try:
                yield _parse_rows(self._file.read_row_group(number, self._columns), start)
            except _PARQUET_ERRORS as error:
                reason = f"the row group of {rows} rows that begins here cannot be read: {error}"
                yield FileBlock(start, [], [ImportFault(start.line, reason)])
            start = BlockPosition(number + 1, start.line + rows)


def _check_columns(schema: pa.Schema, path: Path) -> None:
    if missing := [name for name in TERMS if name not in schema.names]:
        there = ", ".join(schema.names)
        raise BadRequest(f"{path} has no column {missing[0]}; it must have {', '.join(TERMS)}, and has {there}")
    kinds = {name: schema.field(name).type for name in schema.names}
    for name in (*TERMS, *TEXTS):
        if name in kinds and not _is_text(kinds[name]):
            raise BadRequest(f"{path}: the column {name} must be of strings, not of {kinds[name]}")
    if "time" in kinds and not pa.types.is_timestamp(kinds["time"]):
        raise BadRequest(f"{path}: the column time must be of timestamps, not of {kinds['time']}")
    if "position" in kinds and not pa.types.is_integer(kinds["position"]):
        raise BadRequest(f"{path}: the column position must be of integers, not of {kinds['position']}")


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _parse_rows(rows: pa.Table, start: BlockPosition) -> FileBlock:
    lines = pc.binary_join_element_wise(*(rows[name].cast(pa.string()) for name in TERMS), ".", " ")
    try:
        return FileBlock(start, _rows_to_runs(rows, lines, start.line))
    except InputError:
        block = FileBlock(start, [])
    for number in range(rows.num_rows):
        line = start.line + number
        try:
            block.runs.extend(_rows_to_runs(rows.slice(number, 1), lines.slice(number, 1), line))
        except InputError as error:
            text = lines[number].as_py() or " ".join(f"{rows[name][number].as_py()}" for name in TERMS)
            block.faults.append(ImportFault(line, str(error).partition(", at line")[0], text=text.encode()))
    return block


def _rows_to_runs(rows: pa.Table, lines: pa.ChunkedArray, line: int) -> list[EventRun]:
    """Raises InputError if any of the rows has a fault."""
    if lines.null_count:
        raise BadRequest(f"a quad needs {', '.join(TERMS)}; one of them is empty here")
    quads = canonicalize("\n".join([*lines.to_pylist(), ""]).encode(), N_QUADS).decode().split("\n")[:-1]
    if len(quads) != rows.num_rows:
        raise BadRequest("this is no single quad")
    starts = [*_find_starts(rows), rows.num_rows]
    headers = _read_headers(rows.take(pa.array(starts[:-1], pa.int64())))
    return [
        _make_run("\n".join([*quads[first:last], ""]), line + first, *each)
        for first, last, each in zip(starts, starts[1:], headers, strict=False)
    ]


def _make_run(quads: str, line: int, headers: HeaderValues, key: int | None) -> EventRun:
    runs = list(split_runs(quads, line))
    if len(runs) != 1 or not runs[0].text:
        raise BadRequest("this is no quad of an event")
    return EventRun(runs[0].id, headers, runs[0].text, line, key)


def _find_starts(rows: pa.Table) -> list[int]:
    """Return the rows at which another event begins than that of the row before."""
    changed = np.zeros(rows.num_rows, bool)
    changed[:1] = True
    for name in ("graph", "position"):
        if name in rows.column_names:
            values = rows[name].combine_chunks()
            before, after = values.slice(0, max(0, len(values) - 1)), values.slice(1)
            changed[1:] |= pc.fill_null(pc.not_equal(before, after), True).to_numpy(zero_copy_only=False)
    return [int(each) for each in np.flatnonzero(changed)]


def _read_headers(rows: pa.Table) -> Iterator[tuple[HeaderValues, int | None]]:
    """Yield the headers of each row, with its position."""
    if "time" in rows.column_names:
        zoned = rows["time"] if rows["time"].type.tz else pc.assume_timezone(rows["time"], "UTC")
        micros = zoned.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
        rows = rows.set_column(rows.column_names.index("time"), "time", micros)
    for row in rows.to_pylist():
        stream, source, application, extensions = (_read_text(name, row) for name in TEXTS)
        headers = HeaderValues(stream, source, application, row.get("time"), extensions=extensions)
        yield check_stream(headers), row.get("position")


def _read_text(name: str, row: dict[str, Any]) -> str | None:
    value = row.get(name)
    if value is None:
        return None
    return extensions_to_json(extensions_from_json(name, value)) if name == "extensions" else check_header(name, value)
