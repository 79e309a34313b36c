"""The store job: events in, data files of the lake out. The driver commits them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from triplewire.config.heap import freeze_heap
from triplewire.spark.jobs.ports import JobPorts
from triplewire.spark.jobs.source import PositionRange, read_blocks
from triplewire.spark.jobs.workers import (
    TASK_RESULTS,
    CpuCosts,
    charge_cpu,
    hide_pandas,
    pack_results,
    unpack_results,
)
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.ports import DataFile

FILE_EVENTS: Final = 10_000
"""Events of a batch that a worker of `store` makes one file of: 400,000 quads at 40 in an event. It holds them all."""

FILE_TEXT_BYTES: Final = 16 * 1024 * 1024
"""Text of the events that a worker gathers for one file, and the last block beyond it: as quads about ten times as
much."""


_writers: dict[Path, FileWriter] = {}
"""The writers of this worker process, by the table's directory."""


def store_ranges(
    spark: SparkSession, ports: JobPorts, ranges: Sequence[PositionRange], costs: CpuCosts
) -> list[DataFile]:
    """Write the events of some ranges of the log into data files, a task for each range; return the files, for the
    driver to commit."""
    numbers = spark.range(0, len(ranges), 1, len(ranges))
    store = partial(_store_partition, ports, ranges, costs)
    return unpack_results(numbers.mapInArrow(store, from_arrow_schema(TASK_RESULTS)))


def _store_partition(
    ports: JobPorts, ranges: Sequence[PositionRange], costs: CpuCosts, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    hide_pandas()
    table = ports.lake_files
    if table not in _writers:
        _writers[table] = FileWriter(table)
        freeze_heap()
    log = ports.open_log()
    for number in (number for batch in batches for number in batch["id"].to_pylist()):
        for entries in gather_tables(read_blocks(log, ranges[number])):
            with charge_cpu(costs.store):
                file = _writers[table].write(entries)
            yield pack_results([file])


def gather_tables(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield tables together that go into one file: a task holds no more than that."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        rows, size = sum(each.num_rows for each in held), sum(each.nbytes for each in held)
        if rows >= FILE_EVENTS or size >= FILE_TEXT_BYTES:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
