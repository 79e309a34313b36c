"""Quads: the columns of the lake's table, and the data files that hold them."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.lake.ports import DataFile
from triplewire.lake.ranges import measured
from triplewire.sparql import explode, to_sql

_INSTANT = pa.timestamp("us", "UTC")

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
        pa.field("object_time", _INSTANT),
        pa.field("stream", pa.string()),
        pa.field("source", pa.string()),
        pa.field("application", pa.string()),
        pa.field("time", _INSTANT),
        pa.field("received", _INSTANT),
    ]
)
"""One row for each quad, with its place (`position`, and `quad`, its number in the event), the terms as canonical
N-Triples text, the object's typed value, and what was said of the event. `quad` 0 is there once for each event."""

ZONE = "zone"
TABLE = QUADS.append(pa.field(ZONE, pa.string()))
"""The columns of the table: its files are parted by zones, and do not hold that column themselves."""

SORTED = "predicate, position, quad"
"""The order inside a file, in SQL. Quads lie by predicate, so that a pattern reads little but its own."""

ROW_GROUP = 10_240
"""Rows that a reader can pass over at once."""


class FileWriter:
    """Writes data files under a table's directory. Belongs to one worker."""

    def __init__(self, table: Path) -> None:
        self._table = table
        self.duck = duckdb.connect(config={"threads": 1, "autoload_known_extensions": False})
        self.duck.execute("SET TimeZone = 'UTC'")
        self._exploded = to_sql(explode("entries", columns=tuple(QUADS.names)), "duckdb")

    def close(self) -> None:
        self.duck.close()

    def write(self, entries: pa.Table) -> DataFile:
        """One fresh file with all quads of a table of `ENTRIES`, on the disk when this returns. A file that is never
        committed is not part of the table."""
        self.duck.register("entries", entries)
        try:
            return self.write_quads(f"({self._exploded})")
        finally:
            self.duck.unregister("entries")

    def write_quads(self, relation: str, zone: str | None = None) -> DataFile:
        """One file with all rows of a relation that `duck` knows, which has the columns of `QUADS`."""
        columns = ", ".join(QUADS.names)
        quads = pa.table(self.duck.sql(f"SELECT {columns} FROM {relation} ORDER BY {SORTED}")).cast(QUADS)
        self.duck.register("written", quads)
        ranges = measured(self.duck, "written")
        self.duck.unregister("written")
        path = _path(zone)
        size = _write_durably(quads, self._table / path)
        return DataFile(path, size, quads.num_rows, ranges, zone)


def _path(zone: str | None) -> str:
    name = f"quads-{uuid4().hex}.parquet"
    return name if zone is None else f"{ZONE}={zone}/{name}"


def _write_durably(quads: pa.Table, path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        pq.write_table(quads, file, compression="zstd", row_group_size=ROW_GROUP)
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return size
