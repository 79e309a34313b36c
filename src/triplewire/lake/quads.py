"""Quads: the columns of the lake's table, and the data files that hold them."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from triplewire.lake.facets import INSTANT, Facets
from triplewire.lake.parquet import QUICK, SMALL, write_durably
from triplewire.lake.ports import DataFile
from triplewire.lake.ranges import measured
from triplewire.lake.relations import engine
from triplewire.lake.rows import rows

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
        self.duck = engine()
        self._facets = Facets(self.duck)

    def close(self) -> None:
        self.duck.close()

    def write(self, entries: pa.Table) -> DataFile:
        """One fresh file with all quads of a table of `ENTRIES`, on the disk when this returns. A file that is never
        committed is not part of the table."""
        return self._written(rows(entries, self._facets), None, QUICK)

    def write_quads(self, relation: str, zone: str | None = None) -> DataFile:
        """One file with all rows of a relation that `duck` knows, which has the columns of `QUADS`."""
        columns = ", ".join(QUADS.names)
        quads = pa.table(self.duck.sql(f"SELECT {columns} FROM {relation} ORDER BY {SORTED}")).cast(QUADS)
        return self._written(quads, zone, SMALL)

    def _written(self, quads: pa.Table, zone: str | None, level: int) -> DataFile:
        path = _path(zone)
        size = write_durably(quads, self._table / path, level)
        return DataFile(path, size, quads.num_rows, measured(quads), zone)


def _path(zone: str | None) -> str:
    name = f"quads-{uuid4().hex}.parquet"
    return name if zone is None else f"{ZONE}={zone}/{name}"
