"""Shipments: blocks on their way from task to task, to a place of state, or past it to the driver.

What is large lies in a file, and only its name goes to the driver: the JVM has little room for what is collected.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from triplewire.pipeline.blocks import packed, unpacked

SENT = pa.schema(
    [
        pa.field("place", pa.int32(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("block", pa.binary(), nullable=False),
    ]
)
"""A block, the place that it is for, and what it is."""

INPUT, OUTPUT, REPORT, FILE = 0, 1, 2, 3
"""Kinds: what is for a place; what is only passed on to the driver: tables, what is pickled, and names of files."""

FILED_BYTES = 8 * 1024 * 1024
"""What a table has at least for it to lie in a file."""


def sent(place: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table to a place, as blocks; nothing of one without rows."""
    return _blocks(place, INPUT, table)


def told(table: pa.Table, folder: Path) -> Iterator[pa.RecordBatch]:
    """A table to the driver, as blocks or by way of a folder that it also sees; nothing of one without rows."""
    if table.nbytes < FILED_BYTES:
        yield from _blocks(0, OUTPUT, table)
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / uuid4().hex
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    yield _row(0, FILE, str(path).encode())


def reported(report: object) -> pa.RecordBatch:
    """Something small for the driver."""
    return _row(0, REPORT, pickle.dumps(report))


def inputs(batch: pa.RecordBatch) -> list[pa.Table]:
    """What of a batch is for this place."""
    return list(unpacked([_of_kind(batch, INPUT).select(["block"])]))


def passed(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """What of a batch is only passed on."""
    others = batch.filter(pa.array(batch["kind"].to_numpy() != INPUT))
    if others.num_rows:
        yield others


def collected(shipped: DataFrame, schema: pa.Schema, folder: Path) -> tuple[pa.Table, Sequence[object]]:
    """In the driver: all that came out, and all that was reported. The folder for files is gone then."""
    table = shipped.toArrow()
    kinds, blocks = table["kind"].to_numpy(), table.select(["block"])
    tables = unpacked(blocks.filter(pa.array(kinds == OUTPUT)).to_batches())
    files = blocks.filter(pa.array(kinds == FILE))["block"].to_pylist()
    reports = blocks.filter(pa.array(kinds == REPORT))["block"].to_pylist()
    found = pa.concat_tables([schema.empty_table(), *tables, *map(_filed, files)])
    # Also what tasks left there that were done again. What is mapped stays for as long as anybody looks at it.
    shutil.rmtree(folder, ignore_errors=True)
    return found, [pickle.loads(each) for each in reports]


def _filed(path: bytes) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(path.decode())).read_all()


def here() -> int:
    """The place of the task that runs."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _of_kind(batch: pa.RecordBatch, kind: int) -> pa.RecordBatch:
    return batch.filter(pa.array(batch["kind"].to_numpy() == kind))


def _blocks(place: int, kind: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
    for batch in packed(table):
        for block in batch["block"].to_pylist():
            yield _row(place, kind, block)


def _row(place: int, kind: int, block: bytes) -> pa.RecordBatch:
    columns = [pa.array([place], pa.int32()), pa.array([kind], pa.int8()), pa.array([block], pa.binary())]
    return pa.record_batch(columns, schema=SENT)
