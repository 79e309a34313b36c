"""The exchange: Arrow tables as compressed blocks between tasks, to state partitions and to the driver.

Spark converts rows to Arrow and back at some microseconds for each, several times the cost of matching an event. A
block is an Arrow stream in one row, which Spark hands on as it is. Events repeat one another: compression leaves a
sixth of the bytes to be copied from process to process. Large results are written to a file, and only the name goes to
the driver: the JVM has little room for what is collected.
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
"""Events of such a row, together; one that is larger goes alone."""


# Blocks: tables on their way through Spark, thousands of rows as one.
#
# Spark turns rows into Arrow and back, at some microseconds for each, several times what it takes to match an event. A
# block is an Arrow stream that it hands on as it is. It is compressed: events repeat one another, so that a sixth of
# the bytes is left to be copied from process to process, which takes longer than to compress them.

BLOCKS = pa.schema([pa.field("block", pa.binary(), nullable=False)])
"""A row is a table: entries, of which it has the columns that matter, or matches."""

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def pack_table(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table as blocks, a batch for each, none of them much larger than allowed unless it is one row; none at all of a
    table without rows."""
    if not table.num_rows:
        return
    if table.num_rows > 1 and table.nbytes > BLOCK_BYTES:
        middle = table.num_rows // 2
        yield from pack_table(table.slice(0, middle))
        yield from pack_table(table.slice(middle))
        return
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as stream:
        stream.write_table(table.combine_chunks())
    yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], schema=BLOCKS)


def unpack_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The tables that blocks are."""
    for batch in batches:
        for block in batch.column(0):
            yield pa.ipc.open_stream(block.as_buffer()).read_all()


# What is large lies in a file, and only its name goes to the driver: the JVM has little room for what is collected.

EXCHANGED = pa.schema(
    [
        pa.field("place", pa.int32(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("block", pa.binary(), nullable=False),
    ]
)
"""A block, the place that it is for, and what it is."""

INPUT, OUTPUT, REPORT, FILE = 0, 1, 2, 3
"""Kinds: what is for a place; what is only passed on to the driver: tables, what is pickled, and names of files."""

SPILL_BYTES = 8 * 1024 * 1024
"""What a table has at least for it to lie in a file."""


def send_to_partition(place: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table to a place, as blocks; nothing of one without rows."""
    return _blocks(place, INPUT, table)


def send_to_driver(table: pa.Table, folder: Path) -> Iterator[pa.RecordBatch]:
    """A table to the driver, as blocks or by way of a folder that it also sees; nothing of one without rows."""
    if table.nbytes < SPILL_BYTES:
        yield from _blocks(0, OUTPUT, table)
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / uuid4().hex
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    yield _row(0, FILE, str(path).encode())


def send_report(report: object) -> pa.RecordBatch:
    """Something small for the driver."""
    return _row(0, REPORT, pickle.dumps(report))


def read_inputs(batch: pa.RecordBatch) -> list[pa.Table]:
    """What of a batch is for this place."""
    return list(unpack_blocks([_select_kind(batch, INPUT).select(["block"])]))


def pass_through(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """What of a batch is only passed on."""
    others = batch.filter(pa.array(batch["kind"].to_numpy() != INPUT))
    if others.num_rows:
        yield others


def collect_outputs(shipped: DataFrame, schema: pa.Schema, folder: Path) -> tuple[pa.Table, Sequence[object]]:
    """In the driver: all that came out, and all that was reported. The folder for files is gone then."""
    table = shipped.toArrow()
    kinds, blocks = table["kind"].to_numpy(), table.select(["block"])
    tables = unpack_blocks(blocks.filter(pa.array(kinds == OUTPUT)).to_batches())
    files = blocks.filter(pa.array(kinds == FILE))["block"].to_pylist()
    reports = blocks.filter(pa.array(kinds == REPORT))["block"].to_pylist()
    found = pa.concat_tables([schema.empty_table(), *tables, *map(_read_spilled, files)])
    # Also what tasks left there that were done again. What is mapped stays for as long as anybody looks at it.
    shutil.rmtree(folder, ignore_errors=True)
    return found, [pickle.loads(each) for each in reports]


def _read_spilled(path: bytes) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(path.decode())).read_all()


def current_partition() -> int:
    """The place of the task that runs."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _select_kind(batch: pa.RecordBatch, kind: int) -> pa.RecordBatch:
    return batch.filter(pa.array(batch["kind"].to_numpy() == kind))


def _blocks(place: int, kind: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
    for batch in pack_table(table):
        for block in batch["block"].to_pylist():
            yield _row(place, kind, block)


def _row(place: int, kind: int, block: bytes) -> pa.RecordBatch:
    columns = [pa.array([place], pa.int32()), pa.array([kind], pa.int8()), pa.array([block], pa.binary())]
    return pa.record_batch(columns, schema=EXCHANGED)
