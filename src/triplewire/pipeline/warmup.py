"""Warm-up: what is slow the first time is done before the pipeline says that it is ready."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from triplewire.model import ENTRIES, MATCHED_COLUMNS
from triplewire.pipeline.blocks import packed
from triplewire.pipeline.costs import Costs
from triplewire.pipeline.match import matched
from triplewire.pipeline.ports import Ports
from triplewire.pipeline.store import stored


def warm(spark: SparkSession, ports: Ports, costs: Costs) -> None:
    """Start the workers, load the registry in them and run both transforms once over an event that nobody published.
    What it matches is dropped, and it is stored in a directory that is thrown away."""
    position, count = ports.open_log().head(), spark.sparkContext.defaultParallelism
    blocks = pa.Table.from_batches(
        [block for _ in range(count) for block in packed(_entries(position).select(MATCHED_COLUMNS))]
    )
    entries = spark.createDataFrame(blocks).repartition(count)
    matched(entries, ports, costs).toArrow()
    with tempfile.TemporaryDirectory(prefix="triplewire-warm-") as scratch:
        stored(entries, Path(scratch), costs).toArrow()


def keep_warm(spark: SparkSession) -> None:
    """Give a worker next to nothing to do. Spark lets all of them go after a minute in which none was used, and the
    next event would wait two seconds for new ones."""
    spark.range(1, numPartitions=1).mapInArrow(_same, "id long").toArrow()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def _entries(position: int) -> pa.Table:
    """An entry at a position up to which the registry is to be known."""
    row = {
        "position": position,
        "stream": "warm-up",
        "event": "urn:triplewire:warm-up",
        "text": '<urn:s>\t<urn:p>\t"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        "time": 0,
        "received": 0,
        "syntax": "application/n-quads",
    }
    return pa.Table.from_pylist([row], schema=ENTRIES)
