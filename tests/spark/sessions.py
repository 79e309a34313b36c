"""Sessions that are not the broker's, started as quickly as its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from triplewire.spark.java import JVM_OPTIONS, class_cache, java_home

SMALL_QUERIES = {
    # Hundreds of queries over a few rows: to compile Java code for each takes most of the time. Others do compile it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


@contextmanager
def local_session(name: str, master: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session with Spark's defaults but for the settings. The first of a process decides on the options of Java."""
    home = java_home()
    os.environ["JAVA_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    given = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join([*JVM_OPTIONS, *class_cache(home).use_options()]),
        **settings,
    }
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in given.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
