"""The daemon that forks Spark's Python workers, with everything imported that they will need.

Workers that are forked after the imports share them: each starts at once and takes a fraction of the memory. Spark
also starts daemons for workers that only plan; those preload nothing.
"""

from __future__ import annotations

import importlib
import sys

from pyspark import daemon

from triplewire.config.heap import freeze_heap
from triplewire.config.settings import hide

PRELOADED = (
    "duckdb",
    "pyarrow.compute",
    "pyarrow.parquet",
    "triplewire.spark.jobs.match",
    "triplewire.spark.jobs.source",
    "triplewire.spark.jobs.store",
)


def preload() -> None:
    """Import what tasks need. None of it starts a thread that a fork would break."""
    hide("pandas")
    for name in PRELOADED:
        importlib.import_module(name)
    freeze_heap()


if __name__ == "__main__":
    if sys.argv[1:] == ["pyspark.worker"]:
        preload()
    daemon.manager()
