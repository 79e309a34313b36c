"""Spark's Python workers: set-up of the process, functions run as tasks, and the CPU time that they take."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import Accumulator, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from triplewire.config.settings import hide


def hide_pandas() -> None:
    """Hide pandas from imports. Every function that runs in a worker calls this first."""
    hide("pandas")


T = TypeVar("T")
R = TypeVar("R")

TASK_RESULTS = pa.schema([pa.field("made", pa.binary())])
"""Results of a task for the driver: few objects, each pickled. They live no longer than the job, and are in no file."""


def run_tasks(spark: SparkSession, function: Callable[[T], Iterable[R]], items: Sequence[T]) -> list[R]:
    """Run a function on each item as a task; return all results. Items and results must be few and small."""
    numbers = spark.range(0, len(items), 1, len(items))
    return unpack_results(numbers.mapInArrow(partial(_run_each, function, items), from_arrow_schema(TASK_RESULTS)))


def pack_results(things: Iterable[object]) -> pa.RecordBatch:
    return pa.record_batch([pa.array([pickle.dumps(each) for each in things], pa.binary())], schema=TASK_RESULTS)


def unpack_results(rows: DataFrame) -> list[Any]:
    """Run the tasks, and return their results in the driver."""
    return [pickle.loads(each) for each in rows.toArrow()["made"].to_pylist()]


def _run_each(
    function: Callable[[T], Iterable[R]], items: Sequence[T], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    hide_pandas()
    for batch in batches:
        for number in batch["id"].to_pylist():
            yield pack_results(function(items[number]))
    # The worker lives on, and should not hold the memory that a task used.
    pa.default_memory_pool().release_unused()


@dataclass(frozen=True)
class CpuCosts:
    """CPU seconds of all workers since the pipeline began. Workers add to it task by task."""

    store: Accumulator[float]
    continuous: Accumulator[float]

    @classmethod
    def create(cls, context: SparkContext) -> CpuCosts:
        return cls(context.accumulator(0.0), context.accumulator(0.0))

    def seconds(self) -> dict[str, float]:
        """Return the seconds of finished tasks, in the driver."""
        return {"store": self.store.value, "continuous": self.continuous.value}


@contextmanager
def charge_cpu(account: Accumulator[float]) -> Iterator[None]:
    """Add the CPU time of a block to an account, in a worker."""
    began = time.thread_time()
    try:
        yield
    finally:
        account.add(time.thread_time() - began)
