"""The exchange: Arrow tables as compressed blocks between tasks, to state partitions and to the driver.

Spark converts rows to Arrow and back at some microseconds for each, several times the cost of matching an event. A
block is an Arrow stream in one row, which Spark hands on as it is. Events repeat one another: compression leaves a
sixth of the bytes to be copied from process to process. Large results are written to a file, and only the name goes to
the driver: the JVM has little room for what is collected.

Reports to the driver are pickled. They live no longer than a batch, between processes of one version: no file of the
data directory is.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

BLOCK_BYTES: Final = 8 * 1024 * 1024
"""Bytes of a table in one block; a larger row goes alone."""

SPILL_BYTES: Final = 8 * 1024 * 1024
"""Bytes of a table from which on it goes to the driver as a file."""

BLOCKS = pa.schema([pa.field("block", pa.binary(), nullable=False)])
"""A row is a table: entries, with the columns that matching reads, or matches."""

EXCHANGED = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("block", pa.binary(), nullable=False),
    ]
)
"""A block, the partition that it is for, and its kind."""

INPUT, OUTPUT, REPORT, FILE = 0, 1, 2, 3
"""Kinds of blocks: a table for a partition; for the driver, a table, a pickled report, and the name of a file."""

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def pack_table(table: pa.Table, limit: int = BLOCK_BYTES) -> Iterator[pa.RecordBatch]:
    """Yield a table as blocks, a batch for each, none of them much larger than the limit unless it is one row. A table
    without rows has none."""
    if not table.num_rows:
        return
    if table.num_rows > 1 and table.nbytes > limit:
        middle = table.num_rows // 2
        yield from pack_table(table.slice(0, middle), limit)
        yield from pack_table(table.slice(middle), limit)
        return
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as stream:
        stream.write_table(table.combine_chunks())
    yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], schema=BLOCKS)


def unpack_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    for batch in batches:
        for block in batch.column(0):
            yield pa.ipc.open_stream(block.as_buffer()).read_all()


def send_to_partition(partition: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
    return _send_blocks(partition, INPUT, table)


def send_to_driver(table: pa.Table, folder: Path, spill: int = SPILL_BYTES) -> Iterator[pa.RecordBatch]:
    """Send a table to the driver, as blocks or as a file in a folder that the driver sees too."""
    if table.nbytes < spill:
        yield from _send_blocks(0, OUTPUT, table)
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / uuid4().hex
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    yield _row(0, FILE, str(path).encode())


def send_report(report: object) -> pa.RecordBatch:
    """Send a small object to the driver."""
    return _row(0, REPORT, pickle.dumps(report))


def read_inputs(batch: pa.RecordBatch) -> list[pa.Table]:
    """Return the tables of a batch that are for this partition."""
    inputs = batch.filter(pa.array(batch["kind"].to_numpy() == INPUT))
    return list(unpack_blocks([inputs.select(["block"])]))


def pass_through(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch that are for the driver."""
    others = batch.filter(pa.array(batch["kind"].to_numpy() != INPUT))
    if others.num_rows:
        yield others


def collect_outputs(exchanged: DataFrame, schema: pa.Schema, folder: Path) -> tuple[pa.Table, Sequence[object]]:
    """Collect all output tables and reports in the driver, and drop the folder of files."""
    table = exchanged.toArrow()
    kinds, blocks = table["kind"].to_numpy(), table.select(["block"])
    tables = unpack_blocks(blocks.filter(pa.array(kinds == OUTPUT)).to_batches())
    files = blocks.filter(pa.array(kinds == FILE))["block"].to_pylist()
    reports = blocks.filter(pa.array(kinds == REPORT))["block"].to_pylist()
    outputs = pa.concat_tables([schema.empty_table(), *tables, *map(_read_spilled, files)])
    # Files of tasks that were retried go, too. A mapped file stays as long as a table refers to it.
    shutil.rmtree(folder, ignore_errors=True)
    return outputs, [pickle.loads(each) for each in reports]


def _read_spilled(path: bytes) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(path.decode())).read_all()


def current_partition() -> int:
    """Return the partition of the task that runs."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _send_blocks(partition: int, kind: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
    for batch in pack_table(table):
        for block in batch["block"].to_pylist():
            yield _row(partition, kind, block)


def _row(partition: int, kind: int, block: bytes) -> pa.RecordBatch:
    columns = [pa.array([partition], pa.int32()), pa.array([kind], pa.int8()), pa.array([block], pa.binary())]
    return pa.record_batch(columns, schema=EXCHANGED)
