"""A session as somebody's program has it: not ours, with settings that queries would not choose."""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark.sql import SparkSession

from tests.spark.sessions import local_session

SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    # Spark's default; a session before it in the same JVM may have left another.
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}


def program() -> AbstractContextManager[SparkSession]:
    return local_session("a program", "local[2]", SETTINGS)
