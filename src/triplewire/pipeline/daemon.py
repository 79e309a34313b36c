"""The daemon that forks Spark's Python workers, with everything imported that they will need.

Workers that are forked after the imports share them: each is there at once and takes a fraction of the memory.
"""

from __future__ import annotations

import triplewire.pipeline.workers  # isort: skip - hides what the others would import

triplewire.pipeline.workers.lighten()

import duckdb  # noqa: E402, F401
import pyarrow.compute  # noqa: E402
import pyarrow.parquet  # noqa: E402, F401
from pyspark import daemon  # noqa: E402

import triplewire.pipeline.match  # noqa: E402
import triplewire.pipeline.source  # noqa: E402
import triplewire.pipeline.store  # noqa: E402

triplewire.pipeline.workers.keep()

if __name__ == "__main__":
    daemon.manager()
