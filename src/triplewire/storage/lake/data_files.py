"""Data files of the lake: schema, Parquet encoding, min/max statistics, and DuckDB relations over them.

Rows are sorted by predicate and position, so that positions, times, graphs and subjects are delta-encoded: a quarter
of the bytes and a third of the time of dictionaries. Repeated texts and objects stay dictionaries, which are quick to
filter.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import unquote
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from triplewire.config.files import sync
from triplewire.storage.lake.ports import ColumnRange, DataFile, Value
from triplewire.storage.lake.rows import INSTANT, TermFacets, quad_rows

RANGE_CHARACTERS: Final = 192
"""Characters of the least and the greatest text of a column in the statistics of a file: IRIs differ late. At worst 8
kB per file, which every reader of the table holds."""


RANGED = (
    "position",
    "graph",
    "subject",
    "predicate",
    "object",
    "object_number",
    "object_time",
    "stream",
    "source",
    "time",
    "received",
)
"""The columns that are worth a range."""

TIMES = ("object_time", "time", "received")
_LAST = "\U0010ffff"
_SURROGATES, _AFTER_SURROGATES = 0xD800, 0xE000
"""Between these are code points that are no characters."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAID = range((datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1), 253_402_300_800_000_000)
"""The instants, in microseconds, that have a year of four digits."""


def measure_ranges(quads: pa.Table) -> Mapping[str, ColumnRange]:
    """Statistics of a table of quads. The values of dictionaries must all be in use."""
    return dict(_measure_columns(quads))


def _measure_columns(quads: pa.Table) -> Iterator[tuple[str, ColumnRange]]:
    for column in RANGED:
        values = _values(quads[column])
        least, greatest = pc.min_max(values).values()
        if not least.is_valid:
            yield column, (None, None)
            continue
        low, high = _bound(least, str), _bound(greatest, _successor)
        if low is not None and high is not None and not _has_nan(values):
            yield column, (low, high)


def _values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column
    return pa.chunked_array([chunk.dictionary for chunk in column.chunks], column.type.value_type)


def _has_nan(values: pa.ChunkedArray) -> bool:
    """Is there a value that is in no order with others?"""
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def _bound(scalar: pa.Scalar[Any], cut: Callable[[str], str | None]) -> Value | None:
    """A value of the statistics; None for numbers that JSON and times that Python cannot represent. Long texts are
    cut."""
    if isinstance(scalar, pa.TimestampScalar):
        return _EPOCH + timedelta(microseconds=scalar.value) if scalar.value in _SAID else None
    value: str | int | float = scalar.as_py()
    if isinstance(value, str):
        return value if len(value) <= RANGE_CHARACTERS else cut(value[:RANGE_CHARACTERS])
    return value if math.isfinite(value) else None


def _successor(start: str) -> str | None:
    """A text that is greater than all that start with one; None where there is none."""
    rest = start.rstrip(_LAST)
    if not rest:
        return None
    following = ord(rest[-1]) + 1
    return rest[:-1] + chr(_AFTER_SURROGATES if following == _SURROGATES else following)


def format_statistics(file: DataFile) -> str:
    """In the words of Delta."""
    known = {name: bounds for name, bounds in file.ranges.items() if bounds[0] is not None}
    return json.dumps(
        {
            "numRecords": file.rows,
            "minValues": {name: _format_value(bounds[0]) for name, bounds in known.items()},
            "maxValues": {name: _format_value(bounds[1]) for name, bounds in known.items()},
            "nullCount": {name: file.rows for name in file.ranges if name not in known},
        },
        ensure_ascii=False,
    )


def _format_value(value: Value | None) -> int | float | str | None:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27) if isinstance(value, datetime) else value


def files_from_actions(actions: pa.Table) -> Iterator[DataFile]:
    """The files that a table has, from its own account of them, which is flat."""
    for row in actions.to_pylist():
        ranges = {name: found for name in RANGED if (found := _column_range(row, name)) is not None}
        yield DataFile(unquote(row["path"]), row["size_bytes"], row["num_records"], ranges, row.get("partition.zone"))


def file_from_statistics(path: str, size: int, zone: str | None, said: Mapping[str, Any]) -> DataFile:
    """The same from the words of Delta."""
    rows, least, greatest = said["numRecords"], said.get("minValues", {}), said.get("maxValues", {})
    nulls = said.get("nullCount", {})
    row = {
        "num_records": rows,
        **{f"min.{name}": _parse_value(name, value) for name, value in least.items()},
        **{f"max.{name}": _parse_value(name, value) for name, value in greatest.items()},
        **{f"null_count.{name}": value for name, value in nulls.items()},
    }
    ranges = {name: found for name in RANGED if (found := _column_range(row, name)) is not None}
    return DataFile(path, size, rows, ranges, zone)


def _parse_value(column: str, value: float | str) -> Value:
    if column in TIMES:
        return datetime.fromisoformat(str(value))
    return float(value) if column == "object_number" else value


def _column_range(row: Mapping[str, Any], column: str) -> ColumnRange | None:
    least, greatest = row.get(f"min.{column}"), row.get(f"max.{column}")
    if least is not None and greatest is not None:
        return least, greatest
    return (None, None) if row.get(f"null_count.{column}") == row["num_records"] else None


ROW_GROUP = 4_096
"""Rows that a reader can pass over at once, at most."""

QUICK, SMALL = 1, 6
"""Levels of compression: of fresh files, which do not live long, and of those that stay."""

_NUMBERS, _TEXTS = "DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY"
DIFFERENCES = {
    "position": _NUMBERS,
    "quad": _NUMBERS,
    "graph": _TEXTS,
    "subject": _TEXTS,
    "object_time": _NUMBERS,
    "time": _NUMBERS,
    "received": _NUMBERS,
}


def write_durably(quads: pa.Table, path: Path, level: int, said: Mapping[str, str] | None = None) -> int:
    """Write a file, which is on the disk when this returns, and what is `said` of it in it. Its size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_parquet(quads, file, level, said)
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    sync(path.parent)
    return size


def write_parquet(quads: pa.Table, file: BinaryIO, level: int, said: Mapping[str, str] | None = None) -> None:
    """Write rows as Parquet, with the key-value metadata `said`."""
    with _writer(quads.schema, file, level) as writer:
        writer.write_table(quads, _group(quads.num_rows))
        if said:
            writer.add_key_value_metadata(said)


def _group(rows: int) -> int:
    """All groups of a file alike: who looks for one row reads a smaller one than where all but the last are full."""
    groups = math.ceil(rows / ROW_GROUP)
    return math.ceil(rows / groups) if groups else ROW_GROUP


def _writer(schema: pa.Schema, file: BinaryIO, level: int) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        file,
        schema,
        use_dictionary=[name for name in schema.names if name not in DIFFERENCES],
        column_encoding=DIFFERENCES,
        compression="zstd",
        compression_level=level,
        # Arrow's own schema would say that texts are dictionaries, at a kilobyte for each file.
        store_schema=False,
    )


def connect_duckdb() -> duckdb.DuckDBPyConnection:
    """One of its own, for one thread. Times are in UTC."""
    duck = duckdb.connect(config={"threads": 1, "autoload_known_extensions": False})
    duck.execute("SET TimeZone = 'UTC'")
    return duck


def parquet_relation(paths: Iterable[str]) -> str:
    """Files as one relation. Paths come from the table's own log, never from a user; that a zone stands in some of
    them says nothing of their columns."""
    return f"read_parquet([{', '.join(map(quote_literal, paths))}], hive_partitioning = false)"


def quote_literal(text: str) -> str:
    """A constant in SQL."""
    return "'" + text.replace("'", "''") + "'"


QUADS = pa.schema(
    [
        pa.field("position", pa.int64()),
        pa.field("quad", pa.int32()),
        pa.field("graph", pa.string()),
        pa.field("subject", pa.string()),
        pa.field("predicate", pa.string()),
        pa.field("object", pa.string()),
        pa.field("object_kind", pa.string()),
        pa.field("object_datatype", pa.string()),
        pa.field("object_language", pa.string()),
        pa.field("object_number", pa.float64()),
        pa.field("object_time", INSTANT),
        pa.field("stream", pa.string()),
        pa.field("source", pa.string()),
        pa.field("application", pa.string()),
        pa.field("time", INSTANT),
        pa.field("received", INSTANT),
        pa.field("extensions", pa.string()),
    ]
)
"""One row for each quad, with its place (`position`, and `quad`, its number in the event), the terms as canonical
N-Triples text, the object's typed value, and what was said of the event. `quad` 0 is there once for each event, and
alone has its `extensions`: they may be 40 kB, and an event 100,000 quads."""

ZONE = "zone"
TABLE = QUADS.append(pa.field(ZONE, pa.string()))
"""The columns of the table: its files are parted by zones, and do not hold that column themselves."""

SORTED = "predicate, position, quad"
"""The order inside a file, in SQL. Quads lie by predicate, so that a pattern reads little but its own."""


class FileWriter:
    """Writes data files under a table's directory. Belongs to one worker."""

    def __init__(self, table: Path) -> None:
        self._table = table
        self.duck = connect_duckdb()
        self._facets = TermFacets(self.duck)

    def close(self) -> None:
        self.duck.close()

    def write(self, entries: pa.Table) -> DataFile:
        """One fresh file with all quads of a table of `ENTRIES`, on the disk when this returns. A file that is never
        committed is not part of the table."""
        return self._written(quad_rows(entries, self._facets), None, QUICK)

    def write_quads(self, relation: str, zone: str | None = None) -> DataFile:
        """One file with all rows of a relation that `duck` knows, which has the columns of `QUADS`."""
        columns = ", ".join(QUADS.names)
        quads = pa.table(self.duck.sql(f"SELECT {columns} FROM {relation} ORDER BY {SORTED}")).cast(QUADS)
        return self._written(quads, zone, SMALL)

    def _written(self, quads: pa.Table, zone: str | None, level: int) -> DataFile:
        path = _path(zone)
        size = write_durably(quads, self._table / path, level)
        return DataFile(path, size, quads.num_rows, measure_ranges(quads), zone)


def _path(zone: str | None) -> str:
    name = f"quads-{uuid4().hex}.parquet"
    return name if zone is None else f"{ZONE}={zone}/{name}"
