"""Tasks: a function over items as a Spark job, an item a task."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from triplewire.pipeline.workers import lighten

T = TypeVar("T")
R = TypeVar("R")

MADE = pa.schema([pa.field("made", pa.binary())])
"""What a task tells the driver: few things, each pickled."""


def run(spark: SparkSession, function: Callable[[T], Iterable[R]], items: Sequence[T]) -> list[R]:
    """All that the function gives, of all items. They are few and small, and so is what it gives."""
    numbers = spark.range(0, len(items), 1, len(items))
    return made(numbers.mapInArrow(partial(_each, function, items), from_arrow_schema(MADE)))


def row(things: Iterable[object]) -> pa.RecordBatch:
    """As a task gives them."""
    return pa.record_batch([pa.array([pickle.dumps(each) for each in things], pa.binary())], schema=MADE)


def made(rows: DataFrame) -> list[Any]:
    """As the driver gets them, once the tasks have run."""
    return [pickle.loads(each) for each in rows.toArrow()["made"].to_pylist()]


def _each(
    function: Callable[[T], Iterable[R]], items: Sequence[T], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    lighten()
    for batch in batches:
        for number in batch["id"].to_pylist():
            yield row(function(items[number]))
    # What was sorted here is not needed again: the worker lives on, and should not hold its memory.
    pa.default_memory_pool().release_unused()
