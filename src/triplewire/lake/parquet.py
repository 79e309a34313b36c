"""Parquet: how data files are encoded. Any reader of Parquet knows these encodings.

Rows lie by predicate and position, so that what follows is like what came before: positions, times, graphs and
subjects are told by their differences, which is a quarter of the bytes and a third of the time of dictionaries. Texts
that come again and again, and objects, which do for most predicates, stay dictionaries: those are quick to filter.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.config.files import sync

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
