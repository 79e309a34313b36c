"""The Spark session that the pipeline runs in."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from triplewire.pipeline.java import java_home

STREAMING: Mapping[str, str] = {
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

SMALL: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # A row may be a block of megabytes: without this a hundred of them would be one buffer.
    "spark.sql.execution.arrow.maxBytesPerBatch": "33554432",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "triplewire.pipeline.daemon",
    # Its threads would only be in the way of Spark's tasks, one on each core, and of a fork.
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
}

JVM_OPTIONS = (
    # Stopping a query in mid-batch runs a regular expression of Spark's that overflows the usual stack.
    "-Xss8m",
    # The JVM plans and moves batches, it does not compute: the quick compiler starts sooner and is fast enough.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:MaxHeapFreeRatio=30",
    "-XX:MinHeapFreeRatio=10",
)


def start_session(
    name: str, master: str, driver_memory: str, home: Path | None = None, *, objects: bool = False
) -> SparkSession:
    """Start Spark, on `home` as Java where it is given. Workers run this interpreter. `objects` has Spark write its own
    log as lines of JSON."""
    os.environ["JAVA_HOME"] = str(home or java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(name).master(master)
    settings = {
        **STREAMING,
        **SMALL,
        "spark.driver.memory": driver_memory,
        "spark.log.structuredLogging.enabled": str(objects).lower(),
        "spark.driver.extraJavaOptions": " ".join(JVM_OPTIONS),
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
