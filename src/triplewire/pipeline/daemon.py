"""The daemon that forks Spark's Python workers, with everything imported that they will need.

Workers that are forked after the imports share them: each is there at once and takes a fraction of the memory. Spark
also starts daemons for workers that only plan; those stay as they are.
"""

from __future__ import annotations

import importlib
import sys

from pyspark import daemon

from triplewire.pipeline.workers import keep, lighten

NEEDED = (
    "duckdb",
    "pyarrow.compute",
    "pyarrow.parquet",
    "triplewire.pipeline.match",
    "triplewire.pipeline.source",
    "triplewire.pipeline.store",
)


def prepare() -> None:
    """Import what tasks need. None of it starts a thread that a fork would break."""
    lighten()
    for name in NEEDED:
        importlib.import_module(name)
    keep()


if __name__ == "__main__":
    if sys.argv[1:] == ["pyspark.worker"]:
        prepare()
    daemon.manager()
