"""The pipeline's `store` query for `bench history`: the real one, on Spark, over a log that was filled before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import psutil
import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery

from triplewire.bench.machine import usage
from triplewire.config import Settings
from triplewire.service.wiring import pipeline_ports
from triplewire.spark.jobs.application import warm_up
from triplewire.spark.jobs.streaming import JobContext, start_store
from triplewire.spark.jobs.workers import CpuCosts
from triplewire.spark.session import start_session
from triplewire.storage.lake.ports import Lake
from triplewire.storage.log.ports import LogRetention, MeasuredLog, Publication

_LOOK_SECONDS = 0.02
_MEASURE_LOOKS = 50
"""Looks at the lake between two at the memory."""


@dataclass(frozen=True)
class Gated:
    """A log of which nothing is seen but its first entries until the gate, a file, is there: so that a query can be up
    and warm before the clock starts."""

    log: MeasuredLog
    first: int
    gate: Path

    def head(self) -> int:
        return self.log.head() if self.gate.exists() else min(self.first, self.log.head())

    def append(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        return self.log.append(publications)

    def read(self, after: int, upto: int, limit: int) -> pa.Table:
        return self.log.read(after, upto, limit)

    def begin(self) -> int:
        return self.log.begin()

    def gone(self, stream: str | None = None) -> int:
        return self.log.gone(stream)

    def reach(self, after: int, upto: int, size: int) -> int:
        return self.log.reach(after, upto, size)

    def trim(self, retention: LogRetention, before: int) -> int:
        return self.log.trim(retention, before)


@dataclass(frozen=True)
class Ingest:
    """How long it took, how many batches it was, and the most memory that Spark's JVM and the workers had."""

    events: int
    seconds: float
    batches: int
    memory: int
    cpu: float
    """Seconds of CPU time that writing files took in the workers."""


@dataclass(frozen=True)
class Store:
    """The query as it runs in the pipeline, up to the gate."""

    work: JobContext
    query: StreamingQuery
    gate: Path

    @cached_property
    def lake(self) -> Lake:
        return self.work.ports.open_lake()

    def drain(self) -> Ingest:
        """Open the gate, and wait until the lake has everything that is in the log."""
        before, spent = self.lake.files(), self.work.costs.store.value
        self.gate.touch()
        began, head = time.perf_counter(), self.work.ports.open_log().head()
        memory = self._wait(head)
        seconds, after = time.perf_counter() - began, self.lake.files()
        cpu = self.work.costs.store.value - spent
        return Ingest(head - before.upto, seconds, after.version - before.version, memory, cpu)

    def freshness(self, publication: Publication) -> float:
        """Seconds from just before events are published until they can be asked for."""
        began = time.perf_counter()
        ((*_, last),) = self.work.ports.open_log().append([publication])
        self._wait(last)
        return time.perf_counter() - began

    def _wait(self, position: int) -> int:
        """Until the lake is complete up to a position. The most memory that was seen meanwhile."""
        memory, looks = 0, 0
        while self.lake.files().upto < position:
            if failure := self.query.exception():
                raise failure
            looks += 1
            memory = memory if looks % _MEASURE_LOOKS else max(memory, _children())
            time.sleep(_LOOK_SECONDS)
        return memory


@contextmanager
def store(settings: Settings, first: int) -> Iterator[Store]:
    """Start Spark and the query as the pipeline does, and wait until the first entries have gone all the way."""
    spark = start_session("triplewire bench history", settings.master, settings.driver_memory)
    ports, gate = pipeline_ports(settings), settings.data.absolute() / "gate"
    gated = replace(ports, open_log=partial(_gated, ports.open_log, first, gate))
    work = JobContext(spark, gated, settings.checkpoints, CpuCosts.of(spark.sparkContext))
    try:
        warm_up(spark, gated, work.costs)
        started = Store(work, start_store(work, settings.store_interval), gate)
        started._wait(first)
        yield started
    finally:
        for query in spark.streams.active:
            query.stop()
        spark.stop()


def _gated(open_log: Callable[[], MeasuredLog], first: int, gate: Path) -> MeasuredLog:
    return Gated(open_log(), first, gate)


def _children() -> int:
    """Memory of the processes that this one, which is the driver, has started."""
    return usage([each.pid for each in psutil.Process().children()]).memory
