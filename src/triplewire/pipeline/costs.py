"""Costs: the CPU time that our transforms take in the workers, added up in the driver."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark import Accumulator, SparkContext


@dataclass(frozen=True)
class Costs:
    """CPU seconds since the pipeline began. Travels to the workers, which add to it task by task."""

    kernel: Accumulator[float]
    store: Accumulator[float]

    @classmethod
    def of(cls, context: SparkContext) -> Costs:
        return cls(context.accumulator(0.0), context.accumulator(0.0))

    def seconds(self) -> dict[str, float]:
        """In the driver: what finished tasks took."""
        return {"kernel": self.kernel.value, "store": self.store.value}


@contextmanager
def spending(account: Accumulator[float]) -> Iterator[None]:
    """In a worker: what the block takes goes to the account."""
    began = time.thread_time()
    try:
        yield
    finally:
        account.add(time.thread_time() - began)
