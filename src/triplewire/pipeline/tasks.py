"""Tasks: a function over items as a Spark job, an item a task."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from triplewire.pipeline.workers import lighten

T = TypeVar("T")
R = TypeVar("R")


def run(spark: SparkSession, function: Callable[[T], Iterable[R]], items: Sequence[T]) -> list[R]:
    """All that the function gives, of all items. They are few and small, and so is what it gives."""
    numbers = spark.range(0, len(items), 1, len(items))
    made = numbers.mapInArrow(partial(_each, function, items), "made binary").toArrow()
    return [pickle.loads(row) for row in made["made"].to_pylist()]


def _each(
    function: Callable[[T], Iterable[R]], items: Sequence[T], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    lighten()
    for batch in batches:
        for number in batch["id"].to_pylist():
            made = [pickle.dumps(each) for each in function(items[number])]
            yield pa.record_batch({"made": pa.array(made, pa.binary())})
    # What was sorted here is not needed again: the worker lives on, and should not hold its memory.
    pa.default_memory_pool().release_unused()
