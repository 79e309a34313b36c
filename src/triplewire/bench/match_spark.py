"""Spark for `bench match`: a session like the pipeline's, and its own transform over files of entries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from triplewire.bench.machine import usage
from triplewire.bench.match_entries import Entries
from triplewire.config import Settings
from triplewire.spark.jobs.exchange import BLOCKS, unpack_blocks
from triplewire.spark.jobs.match import collect_matches, match_blocks
from triplewire.spark.jobs.ports import JobPorts
from triplewire.spark.jobs.workers import CpuCosts
from triplewire.spark.session import start_session
from triplewire.storage.registry.ontologies import BATCH_EVENTS

MASTER = "local[2]"
CORES = 2
_ONE_FILE = str(2**30)


@dataclass(frozen=True)
class Engine:
    """The running session."""

    spark: SparkSession

    def match(self, entries: Entries, ports: JobPorts) -> tuple[float, pa.Table]:
        """The seconds until all matches of the entries have come to the driver, and the matches."""
        return _timed(lambda: collect_matches(match_blocks(self._frame(entries), ports, self._costs)))

    def pass_on(self, entries: Entries) -> float:
        """The seconds that Spark takes to do the same without matching anything."""
        frame = self._frame(entries)
        return _timed(frame.mapInArrow(_dropped, "position long").toArrow)[0]

    def worker_bytes(self) -> int:
        """Memory of all Python workers together."""
        return sum(bytes_of(each) for each in psutil.Process().children(recursive=True) if "python" in each.name())

    def memory(self) -> int:
        """Memory of everything: this process, which is the driver, Spark's JVM, and the workers. What they share counts
        once."""
        return usage([psutil.Process().pid]).memory

    @cached_property
    def _costs(self) -> CpuCosts:
        return CpuCosts.of(self.spark.sparkContext)

    def _frame(self, entries: Entries) -> DataFrame:
        return self.spark.read.schema(from_arrow_schema(BLOCKS)).parquet(str(entries.directory))


def bytes_of(worker: psutil.Process) -> int:
    """Memory of a worker; what it shares with others is divided among them."""
    try:
        return int(worker.memory_full_info().pss)
    except psutil.Error:
        return 0


@contextmanager
def engine() -> Iterator[Engine]:
    """Start Spark as the pipeline does, but that a file of entries is a task, whatever its size."""
    spark = start_session("triplewire bench match", MASTER, Settings().driver_memory)
    spark.conf.set("spark.sql.files.maxPartitionBytes", _ONE_FILE)
    spark.conf.set("spark.sql.files.openCostInBytes", _ONE_FILE)
    try:
        yield Engine(spark)
    finally:
        spark.stop()


def parts(events: int) -> int:
    """Files for so many events: two for each core, if each then has a batch at least."""
    return max(CORES, min(2 * CORES, events // BATCH_EVENTS))


def _timed(work: Callable[[], pa.Table]) -> tuple[float, pa.Table]:
    began = time.perf_counter()
    table = work()
    return time.perf_counter() - began, table


def _dropped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for entries in unpack_blocks(batches):
        yield from entries.select(["position"]).slice(0, 0).to_batches()
