"""Spark's Python workers: set-up of the process, functions run as tasks, and the CPU time that they take."""

from __future__ import annotations

import gc
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import Accumulator, SparkContext
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from triplewire.config.settings import hide


def hide_pandas() -> None:
    """Called first by whatever runs in a worker, before anything else of ours is done there."""
    hide("pandas")


def freeze_heap() -> None:
    """What lives now stays: Spark collects garbage after every task, and need not look at it each time.

    Called when something was made that lasts. In a small batch the collection used to take a quarter of the time.
    """
    gc.collect()
    gc.freeze()


T = TypeVar("T")
R = TypeVar("R")

TASK_RESULTS = pa.schema([pa.field("made", pa.binary())])
"""What a task tells the driver: few things, each pickled."""


def run_tasks(spark: SparkSession, function: Callable[[T], Iterable[R]], items: Sequence[T]) -> list[R]:
    """All that the function gives, of all items. They are few and small, and so is what it gives."""
    numbers = spark.range(0, len(items), 1, len(items))
    return unpack_results(numbers.mapInArrow(partial(_run_each, function, items), from_arrow_schema(TASK_RESULTS)))


def pack_results(things: Iterable[object]) -> pa.RecordBatch:
    """As a task gives them."""
    return pa.record_batch([pa.array([pickle.dumps(each) for each in things], pa.binary())], schema=TASK_RESULTS)


def unpack_results(rows: DataFrame) -> list[Any]:
    """As the driver gets them, once the tasks have run."""
    return [pickle.loads(each) for each in rows.toArrow()["made"].to_pylist()]


def _run_each(
    function: Callable[[T], Iterable[R]], items: Sequence[T], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    hide_pandas()
    for batch in batches:
        for number in batch["id"].to_pylist():
            yield pack_results(function(items[number]))
    # What was sorted here is not needed again: the worker lives on, and should not hold its memory.
    pa.default_memory_pool().release_unused()


@dataclass(frozen=True)
class CpuCosts:
    """CPU seconds since the pipeline began. Travels to the workers, which add to it task by task."""

    kernel: Accumulator[float]
    store: Accumulator[float]
    slow: Accumulator[float]
    continuous: Accumulator[float]
    shapes: Accumulator[dict[str, float]]
    """Of the evaluator in the main lane, for each shape."""

    @classmethod
    def of(cls, context: SparkContext) -> CpuCosts:
        kernel, store, slow, continuous = (context.accumulator(0.0) for _ in range(4))
        return cls(kernel, store, slow, continuous, context.accumulator({}, _SumByName()))

    def seconds(self) -> dict[str, float]:
        """In the driver: what finished tasks took."""
        accounts = {"kernel": self.kernel, "store": self.store, "slow": self.slow, "ongoing": self.continuous}
        return {name: account.value for name, account in accounts.items()}


class _SumByName(AccumulatorParam[dict[str, float]]):
    """Adds up what belongs to one name."""

    def zero(self, value: dict[str, float]) -> dict[str, float]:
        return {}

    def addInPlace(self, value1: dict[str, float], value2: dict[str, float]) -> dict[str, float]:
        for name, seconds in value2.items():
            value1[name] = value1.get(name, 0.0) + seconds
        return value1


@contextmanager
def charge_cpu(account: Accumulator[float]) -> Iterator[None]:
    """In a worker: what the block takes goes to the account."""
    began = time.thread_time()
    try:
        yield
    finally:
        account.add(time.thread_time() - began)
