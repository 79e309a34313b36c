"""Shipments: blocks on their way from task to task, to a place of state, or past it to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

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

INPUT, OUTPUT, REPORT = 0, 1, 2
"""Kinds: what is for a place; what is only passed on to the driver, tables or pickled."""


def sent(place: int, kind: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table, as blocks; nothing of one without rows."""
    for batch in packed(table):
        for block in batch["block"].to_pylist():
            yield _row(place, kind, block)


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


def collected(shipped: DataFrame, schema: pa.Schema) -> tuple[pa.Table, Sequence[object]]:
    """In the driver: all that came out, and all that was reported."""
    table = shipped.toArrow()
    kinds, blocks = table["kind"].to_numpy(), table.select(["block"])
    tables = unpacked(blocks.filter(pa.array(kinds == OUTPUT)).to_batches())
    reports = blocks.filter(pa.array(kinds == REPORT))["block"].to_pylist()
    return pa.concat_tables([schema.empty_table(), *tables]), [pickle.loads(each) for each in reports]


def here() -> int:
    """The place of the task that runs."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _of_kind(batch: pa.RecordBatch, kind: int) -> pa.RecordBatch:
    return batch.filter(pa.array(batch["kind"].to_numpy() == kind))


def _row(place: int, kind: int, block: bytes) -> pa.RecordBatch:
    columns = [pa.array([place], pa.int32()), pa.array([kind], pa.int8()), pa.array([block], pa.binary())]
    return pa.record_batch(columns, schema=SENT)
