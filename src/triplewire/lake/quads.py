"""Quads: the columns of the lake's table, and the data files that hold them."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from triplewire.lake.ports import DataFile
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


ROW_GROUP = 10_240
"""Rows that a reader can pass over at once. Quads lie by predicate, so that a pattern reads little but its own."""


class FileWriter:
    """Writes batches of `ENTRIES` as data files under a table's directory. Belongs to one worker."""

    def __init__(self, table: Path) -> None:
        self._table = table
        self._duck = duckdb.connect(config={"threads": 1, "autoload_known_extensions": False})
        exploded = to_sql(explode("entries", columns=tuple(QUADS.names)), "duckdb")
        self._sql = f"SELECT * FROM ({exploded}) ORDER BY predicate, position, quad"

    def write(self, entries: pa.Table) -> DataFile:
        """One file with all quads of the entries, on the disk when this returns. A file that is never committed
        is not part of the table."""
        self._duck.register("entries", entries)
        quads = pa.table(self._duck.sql(self._sql)).cast(QUADS)
        self._duck.unregister("entries")
        first, last = pc.min_max(entries["position"]).as_py().values()
        path = f"quads-{first:016x}-{uuid4().hex}.parquet"
        size = _write_durably(quads, self._table / path)
        return DataFile(path, size, quads.num_rows, first, last)


def _write_durably(quads: pa.Table, path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        pq.write_table(quads, file, compression="zstd", row_group_size=ROW_GROUP)
        file.flush()
        os.fsync(file.fileno())
        return file.tell()
