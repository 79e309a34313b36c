"""A session as somebody's program has it: not ours, with settings that queries would not choose."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from triplewire.spark.java import java_home
from triplewire.spark.session import JVM_OPTIONS

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    # Spark's default; a session before it in the same JVM may have left another.
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": " ".join(JVM_OPTIONS),
}


@contextmanager
def program() -> Iterator[SparkSession]:
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("a program")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    try:
        yield made
    finally:
        made.stop()
