"""The Spark session of the jobs and of the query engine."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas import functions

from triplewire.config.files import file_lock
from triplewire.config.settings import hide
from triplewire.spark.java import JVM_OPTIONS, class_cache, java_home

STREAMING_SETTINGS: Mapping[str, str] = {
    # Half of a small batch is checkpoint files; the default manager writes each of them twice, over a rename.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Checksums beside each of those small files, Spark's and Hadoop's, double them once more.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "5",
    # A trigger without news is not worth a progress report.
    "spark.sql.streaming.noDataProgressEventInterval": "60s",
    # Two queries share the cores: neither waits for the other's batch to end.
    "spark.scheduler.mode": "FAIR",
}

SESSION_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # A row may be a block of megabytes: without this a hundred of them would be one buffer.
    "spark.sql.execution.arrow.maxBytesPerBatch": "33554432",
    "spark.python.worker.reuse": "true",
    # Over TCP each job waits some 40 ms for a delayed acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "triplewire.spark.jobs.daemon",
    # Its threads would only be in the way of Spark's tasks, one on each core, and of a fork.
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
}

SAMPLE_BATCHES = 5
"""Batches of the query that fills the class cache."""


def start_session(
    name: str,
    master: str,
    driver_memory: str,
    home: Path | None = None,
    *,
    objects: bool = False,
    resident: int = 0,
    jvm_options: Sequence[str] | None = None,
) -> SparkSession:
    """Start Spark, on `home` as Java where it is given. Workers run this interpreter.

    `objects` has Spark write its own log as lines of JSON. A local master gets a thread more for each of `resident`
    tasks. `jvm_options` are beside the usual ones; without them the class cache is used.
    """
    home = home or java_home()
    os.environ["JAVA_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    extra = class_cache(home).use_options() if jvm_options is None else jvm_options
    master, parallelism = _add_threads(master, resident)
    builder = SparkSession.builder.appName(name).master(master)
    settings = {
        **STREAMING_SETTINGS,
        **SESSION_SETTINGS,
        "spark.driver.memory": driver_memory,
        "spark.log.structuredLogging.enabled": str(objects).lower(),
        "spark.driver.extraJavaOptions": " ".join([*JVM_OPTIONS, *extra]),
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    for key, value in (settings | parallelism).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def do_without_pandas() -> None:
    """Hide pandas from a driver: half a second and 50 MB. Spark insists on it before `mapInArrow`, and does not use it
    there."""
    hide("pandas")
    functions.require_minimum_pandas_version = lambda: None  # type: ignore[attr-defined]


def _add_threads(master: str, count: int) -> tuple[str, dict[str, str]]:
    """Return a local master with more threads, and the setting by which jobs are still split as before: tasks that do
    not end would leave too few threads to the others. Another master is returned as it is."""
    found = re.fullmatch(r"local\[(\d+|\*)(,\s*\d+)?\]", master)
    if not found or not count:
        return master, {}
    threads = (os.cpu_count() or 1) if found[1] == "*" else int(found[1])
    return f"local[{threads + count}{found[2] or ''}]", {"spark.default.parallelism": str(threads)}


def make_class_cache(home: Path | None = None) -> bool:
    """Make the class cache of this installation, unless it exists: start Spark, run a query as the pipeline's are, and
    let its JVM write the classes that it loaded. Return whether a cache was made. It takes half a minute, and this
    process can start no session afterwards.

    Raises Conflict while another process makes it, OSError where there is no room for it.
    """
    home = home or java_home()
    cache = class_cache(home)
    cache.path.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(cache.path.with_suffix(".lock"), "another process is making the class cache"):
        if cache.path.exists():
            return False
        scratch = cache.path.with_suffix(".part")
        _run_sample_query(start_session("classes", "local[2]", "1g", home, jvm_options=cache.record_options(scratch)))
        if not scratch.exists():
            raise OSError(f"Java did not write {scratch}")
        scratch.rename(cache.path)
        return True


def _run_sample_query(spark: SparkSession) -> None:
    """Run a streaming query with a Python operator for a few batches, then end the JVM and wait for it."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
    batches: list[int] = []

    def collect(frame: DataFrame, number: int) -> None:
        batches.append(frame.repartition(2).mapInArrow(identity, frame.schema).toArrow().num_rows)

    query = source.writeStream.foreachBatch(collect).trigger(processingTime="0 seconds").start()
    while len(batches) < SAMPLE_BATCHES and query.isActive:
        query.awaitTermination(1)
    query.stop()
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return what comes: a Python operator that does nothing."""
    return batches
