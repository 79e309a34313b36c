"""Spark for benchmarks: a session like that of the pipeline, whose workers can import `bench`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from bench.links import share_imports
from triplewire.config import Settings
from triplewire.spark.session import start_session


@contextmanager
def start_spark(name: str, settings: Settings, master: str | None = None) -> Iterator[SparkSession]:
    """Start Spark as the pipeline does; stop its queries and itself afterwards."""
    share_imports()
    spark = start_session(f"triplewire bench {name}", master or settings.master, settings.driver_memory)
    try:
        yield spark
    finally:
        for query in spark.streams.active:
            query.stop()
        spark.stop()
