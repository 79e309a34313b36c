"""Blocks: tables on their way through Spark, thousands of rows as one.

Spark turns rows into Arrow and back, at some microseconds for each, several times what it takes to match an event. A
block is an Arrow stream that it hands on as it is. It is compressed: events repeat one another, so that a sixth of the
bytes is left to be copied from process to process, which takes longer than to compress them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from triplewire.config.limits import BLOCK_BYTES

BLOCKS = pa.schema([pa.field("block", pa.binary(), nullable=False)])
"""A row is a table: entries, of which it has the columns that matter, or matches."""

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def packed(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table as blocks, a batch for each, none of them much larger than allowed unless it is one row; none at all of a
    table without rows."""
    if not table.num_rows:
        return
    if table.num_rows > 1 and table.nbytes > BLOCK_BYTES:
        middle = table.num_rows // 2
        yield from packed(table.slice(0, middle))
        yield from packed(table.slice(middle))
        return
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as stream:
        stream.write_table(table.combine_chunks())
    yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], schema=BLOCKS)


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The tables that blocks are."""
    for batch in batches:
        for block in batch.column(0):
            yield pa.ipc.open_stream(block.as_buffer()).read_all()
