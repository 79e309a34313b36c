"""Costs: the CPU time that our transforms take in the workers, added up in the driver."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark import Accumulator, SparkContext
from pyspark.accumulators import AccumulatorParam


@dataclass(frozen=True)
class Costs:
    """CPU seconds since the pipeline began. Travels to the workers, which add to it task by task."""

    kernel: Accumulator[float]
    store: Accumulator[float]
    slow: Accumulator[float]
    ongoing: Accumulator[float]
    shapes: Accumulator[dict[str, float]]
    """Of the evaluator in the main lane, for each shape."""

    @classmethod
    def of(cls, context: SparkContext) -> Costs:
        kernel, store, slow, ongoing = (context.accumulator(0.0) for _ in range(4))
        return cls(kernel, store, slow, ongoing, context.accumulator({}, _ByName()))

    def seconds(self) -> dict[str, float]:
        """In the driver: what finished tasks took."""
        accounts = {"kernel": self.kernel, "store": self.store, "slow": self.slow, "ongoing": self.ongoing}
        return {name: account.value for name, account in accounts.items()}


class _ByName(AccumulatorParam[dict[str, float]]):
    """Adds up what belongs to one name."""

    def zero(self, value: dict[str, float]) -> dict[str, float]:
        return {}

    def addInPlace(self, value1: dict[str, float], value2: dict[str, float]) -> dict[str, float]:
        for name, seconds in value2.items():
            value1[name] = value1.get(name, 0.0) + seconds
        return value1


@contextmanager
def spending(account: Accumulator[float]) -> Iterator[None]:
    """In a worker: what the block takes goes to the account."""
    began = time.thread_time()
    try:
        yield
    finally:
        account.add(time.thread_time() - began)
