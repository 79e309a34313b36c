"""The `store` query: events in, data files of the lake out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from triplewire.config.limits import FILE_EVENTS, FILE_TEXT_BYTES
from triplewire.pipeline.blocks import unpacked
from triplewire.pipeline.costs import Costs, spending
from triplewire.pipeline.tasks import MADE, row
from triplewire.pipeline.workers import keep, lighten
from triplewire.storage.lake.data_files import FileWriter

_writers: dict[Path, FileWriter] = {}
"""Of this worker process, by the table's directory."""


def stored(blocks: DataFrame, table: Path, costs: Costs) -> DataFrame:
    """From a frame of `BLOCKS` to one of `MADE`: data files, each of which was written and waits for its commit."""
    return blocks.mapInArrow(partial(_store, table, costs), from_arrow_schema(MADE))


def _store(table: Path, costs: Costs, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    lighten()
    for entries in gathered(unpacked(batches)):
        if table not in _writers:
            _writers[table] = FileWriter(table)
            keep()
        with spending(costs.store):
            file = _writers[table].write(entries)
        yield row([file])


def gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables, put together as long as one file takes them: a task holds no more than that."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        rows, size = sum(each.num_rows for each in held), sum(each.nbytes for each in held)
        if rows >= FILE_EVENTS or size >= FILE_TEXT_BYTES:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
