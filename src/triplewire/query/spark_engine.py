"""Spark as the engine of a process of queries: one session, kept."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event as Flag
from time import perf_counter

import pyarrow as pa
from pyspark.sql import SparkSession

from triplewire.access import Sight
from triplewire.history.engines import QueryProfile, time_limit_error
from triplewire.history.pruning import ScannedFiles, ZoneMaps, find_scanned
from triplewire.history.requests import QueryLimits
from triplewire.query import spark
from triplewire.sparql import CompiledQuery
from triplewire.storage.lake.ports import Snapshot
from triplewire.storage.lake.read_counts import ReadCounter

logger = logging.getLogger(__name__)


class Spark:
    """Runs queries one after the other, as jobs of one session."""

    def __init__(self, session: SparkSession, reads: ReadCounter | None = None) -> None:
        self._session = session
        self._reads = reads
        spark.configure(session)
        self._interrupted = Flag()

    def statistics(self, snapshot: Snapshot) -> None:
        """Spark plans by statistics of its own."""

    def prepare(self, snapshot: Snapshot) -> bool:
        """There is nothing to do beforehand."""
        if self._reads is not None:
            self._reads.save()
        return False

    def scanned(self, compiled: CompiledQuery, snapshot: Snapshot) -> ScannedFiles:
        return find_scanned(compiled, snapshot, ZoneMaps(snapshot.files), "spark")

    def batches(
        self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits, sight: Sight | None = None
    ) -> Iterator[pa.RecordBatch]:
        self._interrupted.clear()
        with self._translated(bounds):
            placed, scanned = spark.pruned(self._session, compiled, snapshot, sight)
            if self._reads is not None:
                self._reads.add(scanned.zones_scanned)
            yield from spark.batches(self._session, placed)

    def profile(self, compiled: CompiledQuery, snapshot: Snapshot, bounds: QueryLimits) -> QueryProfile:
        self._interrupted.clear()
        with self._translated(bounds):
            began = perf_counter()
            placed, scanned = spark.pruned(self._session, compiled, snapshot)
            rows = sum(batch.num_rows for batch in spark.batches(self._session, placed))
            return QueryProfile(rows, perf_counter() - began, scanned, spark.explained(self._session, placed))

    def interrupt(self) -> None:
        self._interrupted.set()
        self._session.sparkContext.cancelAllJobs()

    def close(self) -> None:
        self._session.stop()

    @contextmanager
    def _translated(self, bounds: QueryLimits) -> Iterator[None]:
        """A job that was cancelled fails in many ways: that it was is what counts."""
        try:
            yield
        except Exception:
            if not self._interrupted.is_set():
                raise
            logger.debug("a query was interrupted", exc_info=True)
            raise time_limit_error(bounds.seconds) from None
