"""File readers: N-Quads and TriG, plain or gzip, and Parquet with a row for each quad, read block by block."""

from __future__ import annotations

import gzip
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
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
    shift_fault,
    split_runs,
)

IMPORT_BYTES: Final = 1024 * 1024
"""What an import reads of a file at once; one event more may begin within it."""


_GZIP_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)
_DIRECTIVES = re.compile(rb"(?i)prefix|base|version")


class TextReader:
    """A file of text. Offsets are bytes of the text, and not of the file where that is compressed."""

    def __init__(self, path: Path, *, zipped: bool, trig: bool) -> None:
        self._path, self._zipped = path, zipped
        self._syntax = TRIG if trig else N_QUADS
        self._parts: Callable[[bytes, int], Iterator[DocumentPart]] = split_statements if trig else split_lines
        self._taken = _statements if trig else _lines

    def size(self) -> int | None:
        return None if self._zipped else self._path.stat().st_size

    def blocks(self, spot: BlockPosition) -> Iterator[FileBlock]:
        with self._open() as file:
            try:
                file.seek(spot.offset)
                text, rest = self._taken(file, b"")
                while text:
                    yield self._block(text, spot)
                    spot = self._after(text, spot)
                    text, rest = self._taken(file, rest)
            except _GZIP_ERRORS as error:
                yield FileBlock(
                    spot, [], [ImportFault(spot.line, f"from here on the file cannot be unpacked: {error}")]
                )

    def _open(self) -> BinaryIO:
        return cast(BinaryIO, gzip.open(self._path) if self._zipped else self._path.open("rb"))

    def _block(self, text: bytes, spot: BlockPosition) -> FileBlock:
        text = text if spot.offset else text.removeprefix(BOM_UTF8)
        try:
            found = self._runs(DocumentPart(text, spot.line), spot.prologue.encode())
        except InputError:
            return self._one_by_one(text, spot)
        placed = list(_placed(found, text, spot.line))
        return FileBlock(spot, placed) if len(placed) == len(found) else self._one_by_one(text, spot)

    def _one_by_one(self, text: bytes, spot: BlockPosition) -> FileBlock:
        """What is wrong is found by looking at each part by itself; the others are taken."""
        block, prologue = FileBlock(spot, []), spot.prologue.encode()
        for part in self._parts(text, spot.line):
            try:
                block.runs.extend(self._runs(part, prologue))
                prologue = _joined(prologue, [part])
            except InputError as error:
                fault = shift_fault(
                    make_fault(error, part.line, part.body), prologue.count(b"\n") if error.place else 0
                )
                block.faults.append(fault)
        return block

    def _runs(self, part: DocumentPart, prologue: bytes) -> list[EventRun]:
        return list(split_runs(canonicalize(prologue + part.body, self._syntax).decode(), part.line))

    def _after(self, text: bytes, spot: BlockPosition) -> BlockPosition:
        prologue = spot.prologue.encode()
        if self._syntax is TRIG and _DIRECTIVES.search(text):
            prologue = _joined(prologue, list(self._parts(text, spot.line)))
        return BlockPosition(spot.offset + len(text), spot.line + text.count(b"\n"), prologue.decode())


def _joined(prologue: bytes, parts: list[DocumentPart]) -> bytes:
    """The directives that hold after some parts; one that comes again is not kept twice."""
    for part in parts:
        body = part.body.strip() + b"\n"
        if part.directive and not prologue.endswith(body):
            prologue = prologue.replace(body, b"") + body
    return prologue


def _placed(found: Iterable[EventRun], text: bytes, line: int) -> Iterator[EventRun]:
    """Each with the line at which its event is named, up to the first that is named in other words, by a prefix."""
    at = 0
    for run in found:
        here = text.find(f"<{run.id}>".encode(), at)
        if here < 0:
            return
        line, at = line + text.count(b"\n", at, here), here
        yield replace(run, line=line)


def _lines(file: BinaryIO, rest: bytes) -> tuple[bytes, bytes]:
    """The next lines, whole ones unless one is longer than any event."""
    return file.read(IMPORT_BYTES) + file.readline(BODY_BYTES), rest


def _statements(file: BinaryIO, rest: bytes) -> tuple[bytes, bytes]:
    """The next statements, whole ones unless one is longer than any event, and what was read of those after them; at
    the end of the file all that is left. It depends on nothing but where they begin."""
    text, wanted = rest, 0
    while True:
        wanted += IMPORT_BYTES
        text += file.read(max(0, wanted - len(text)))
        if len(text) < wanted:
            return text, b""
        if last := max(find_ends(text, whole=False), default=0):
            return text[:last], text[last:]
        if wanted > BODY_BYTES:
            return text, b""


# Rows: Parquet files with a row for each quad, read one row group at a time.

TERMS = ("subject", "predicate", "object", "graph")
"""The columns that must be there, as N-Triples writes terms."""
TEXTS = ("stream", "source", "application", "extensions")
"""Those that may be there, with `time` and `position`. Rows next to each other that have one position are one event."""

_INSTANT = pa.timestamp("us", "UTC")
_PARQUET_ERRORS = (pa.ArrowException, OSError)


class ParquetReader:
    """A Parquet file. Offsets are row groups, lines are rows."""

    def __init__(self, path: Path) -> None:
        """Raises BadRequest for a file that is no Parquet, or has other columns."""
        self._path = path
        try:
            self._file = pq.ParquetFile(path)
        except _PARQUET_ERRORS as error:
            raise BadRequest(f"{path} is no Parquet file, or not a whole one: {error}") from None
        _check(self._file.schema_arrow, path)
        known = (*TERMS, *TEXTS, "time", "position")
        self._columns = [name for name in known if name in self._file.schema_arrow.names]

    def size(self) -> int | None:
        return int(self._file.num_row_groups)

    def blocks(self, spot: BlockPosition) -> Iterator[FileBlock]:
        for number in range(spot.offset, self._file.num_row_groups):
            spot = BlockPosition(number, spot.line)
            rows = self._file.metadata.row_group(number).num_rows
            try:
                yield _block(self._file.read_row_group(number, self._columns), spot)
            except _PARQUET_ERRORS as error:
                what = f"the row group of {rows} rows that begins here cannot be read: {error}"
                yield FileBlock(spot, [], [ImportFault(spot.line, what)])
            spot = BlockPosition(number + 1, spot.line + rows)


def _check(schema: pa.Schema, path: Path) -> None:
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


def _block(rows: pa.Table, spot: BlockPosition) -> FileBlock:
    lines = pc.binary_join_element_wise(*(rows[name].cast(pa.string()) for name in TERMS), ".", " ")
    try:
        return FileBlock(spot, _runs(rows, lines, spot.line))
    except InputError:
        return _one_by_one(rows, lines, spot)


def _one_by_one(rows: pa.Table, lines: pa.ChunkedArray, spot: BlockPosition) -> FileBlock:
    block = FileBlock(spot, [])
    for number in range(rows.num_rows):
        try:
            block.runs.extend(_runs(rows.slice(number, 1), lines.slice(number, 1), spot.line + number))
        except InputError as error:
            text = lines[number].as_py() or " ".join(f"{rows[name][number].as_py()}" for name in TERMS)
            block.faults.append(
                ImportFault(spot.line + number, str(error).partition(", at line")[0], text=text.encode())
            )
    return block


def _runs(rows: pa.Table, lines: pa.ChunkedArray, line: int) -> list[EventRun]:
    """The runs of some rows. Raises InputError if there is anything wrong with any of them."""
    if lines.null_count:
        raise BadRequest(f"a quad needs {', '.join(TERMS)}; one of them is empty here")
    quads = canonicalize("\n".join([*lines.to_pylist(), ""]).encode(), N_QUADS).decode().split("\n")[:-1]
    if len(quads) != rows.num_rows:
        raise BadRequest("this is no single quad")
    starts = [*_starts(rows), rows.num_rows]
    said = _row_headers(rows.take(pa.array(starts[:-1], pa.int64())))
    return [
        _run("\n".join([*quads[first:last], ""]), line + first, *each)
        for first, last, each in zip(starts, starts[1:], said, strict=False)
    ]


def _run(quads: str, line: int, said: HeaderValues, key: int | None) -> EventRun:
    found = list(split_runs(quads, line))
    if len(found) != 1 or not found[0].text:
        raise BadRequest("this is no quad of an event")
    return EventRun(found[0].id, said, found[0].text, line, key)


def _starts(rows: pa.Table) -> list[int]:
    """The rows at which another event begins than that of the row before."""
    changed = np.zeros(rows.num_rows, bool)
    changed[:1] = True
    for name in ("graph", "position"):
        if name in rows.column_names:
            values = rows[name].combine_chunks()
            before, after = values.slice(0, max(0, len(values) - 1)), values.slice(1)
            changed[1:] |= pc.fill_null(pc.not_equal(before, after), True).to_numpy(zero_copy_only=False)
    return [int(each) for each in np.flatnonzero(changed)]


def _row_headers(rows: pa.Table) -> list[tuple[HeaderValues, int | None]]:
    found = []
    for row in _with_microseconds(rows).to_pylist():
        stream, source, application, others = (_text(name, row) for name in TEXTS)
        said = HeaderValues(stream, source, application, row.get("time"), extensions=others)
        found.append((check_stream(said), row.get("position")))
    return found


def _with_microseconds(rows: pa.Table) -> pa.Table:
    if "time" not in rows.column_names:
        return rows
    kind = rows.schema.field("time").type
    zoned = rows["time"] if kind.tz else pc.assume_timezone(rows["time"], "UTC")
    micros = zoned.cast(_INSTANT, safe=False).cast(pa.int64())
    return rows.set_column(rows.column_names.index("time"), "time", micros)


def _text(name: str, row: dict[str, Any]) -> str | None:
    value = row.get(name)
    if value is None:
        return None
    return extensions_to_json(extensions_from_json(name, value)) if name == "extensions" else check_header(name, value)
