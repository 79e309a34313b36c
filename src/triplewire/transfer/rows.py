"""Rows: Parquet files with a row for each quad, read one row group at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from triplewire.codec import N_QUADS
from triplewire.codec.extensions import from_json, to_json
from triplewire.codec.headers import Said, clean
from triplewire.codec.statements import canonical
from triplewire.model.errors import BadRequest, InputError
from triplewire.transfer.events import Block, Spot
from triplewire.transfer.faults import Fault
from triplewire.transfer.runs import Run, checked, runs

TERMS = ("subject", "predicate", "object", "graph")
"""The columns that must be there, as N-Triples writes terms."""
TEXTS = ("stream", "source", "application", "extensions")
"""Those that may be there, with `time` and `position`. Rows next to each other that have one position are one event."""

_INSTANT = pa.timestamp("us", "UTC")
_UNREADABLE = (pa.ArrowException, OSError)


class RowReader:
    """A Parquet file. Offsets are row groups, lines are rows."""

    def __init__(self, path: Path) -> None:
        """Raises BadRequest for a file that is no Parquet, or has other columns."""
        self._path = path
        try:
            self._file = pq.ParquetFile(path)
        except _UNREADABLE as error:
            raise BadRequest(f"{path} is no Parquet file, or not a whole one: {error}") from None
        _check(self._file.schema_arrow, path)
        known = (*TERMS, *TEXTS, "time", "position")
        self._columns = [name for name in known if name in self._file.schema_arrow.names]

    def size(self) -> int | None:
        return int(self._file.num_row_groups)

    def blocks(self, spot: Spot) -> Iterator[Block]:
        for number in range(spot.offset, self._file.num_row_groups):
            spot = Spot(number, spot.line)
            rows = self._file.metadata.row_group(number).num_rows
            try:
                yield _block(self._file.read_row_group(number, self._columns), spot)
            except _UNREADABLE as error:
                what = f"the row group of {rows} rows that begins here cannot be read: {error}"
                yield Block(spot, [], [Fault(spot.line, what)])
            spot = Spot(number + 1, spot.line + rows)


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


def _block(rows: pa.Table, spot: Spot) -> Block:
    lines = pc.binary_join_element_wise(*(rows[name].cast(pa.string()) for name in TERMS), ".", " ")
    try:
        return Block(spot, _runs(rows, lines, spot.line))
    except InputError:
        return _one_by_one(rows, lines, spot)


def _one_by_one(rows: pa.Table, lines: pa.ChunkedArray, spot: Spot) -> Block:
    block = Block(spot, [])
    for number in range(rows.num_rows):
        try:
            block.runs.extend(_runs(rows.slice(number, 1), lines.slice(number, 1), spot.line + number))
        except InputError as error:
            text = lines[number].as_py() or " ".join(f"{rows[name][number].as_py()}" for name in TERMS)
            block.faults.append(Fault(spot.line + number, str(error).partition(", at line")[0], text=text.encode()))
    return block


def _runs(rows: pa.Table, lines: pa.ChunkedArray, line: int) -> list[Run]:
    """The runs of some rows. Raises InputError if there is anything wrong with any of them."""
    if lines.null_count:
        raise BadRequest(f"a quad needs {', '.join(TERMS)}; one of them is empty here")
    quads = canonical("\n".join([*lines.to_pylist(), ""]).encode(), N_QUADS).decode().split("\n")[:-1]
    if len(quads) != rows.num_rows:
        raise BadRequest("this is no single quad")
    starts = [*_starts(rows), rows.num_rows]
    said = _said(rows.take(pa.array(starts[:-1], pa.int64())))
    return [
        _run("\n".join([*quads[first:last], ""]), line + first, *each)
        for first, last, each in zip(starts, starts[1:], said, strict=False)
    ]


def _run(quads: str, line: int, said: Said, key: int | None) -> Run:
    found = list(runs(quads, line))
    if len(found) != 1 or not found[0].text:
        raise BadRequest("this is no quad of an event")
    return Run(found[0].id, said, found[0].text, line, key)


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


def _said(rows: pa.Table) -> list[tuple[Said, int | None]]:
    found = []
    for row in _with_microseconds(rows).to_pylist():
        stream, source, application, others = (_text(name, row) for name in TEXTS)
        said = Said(stream, source, application, row.get("time"), extensions=others)
        found.append((checked(said), row.get("position")))
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
    return to_json(from_json(name, value)) if name == "extensions" else clean(name, value)
