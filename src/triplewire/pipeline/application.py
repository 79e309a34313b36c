"""The pipeline as a process: one Spark application that runs the streaming queries until it is told to stop."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event as Flag
from threading import Thread

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from triplewire.config import Settings
from triplewire.config.files import file_lock, prepare_directory
from triplewire.config.limits import LOG_AGE_SECONDS, LOG_BYTES, PREPARE_SECONDS
from triplewire.config.logs import JSON
from triplewire.config.settings import is_orphaned
from triplewire.config.status import HEARTBEAT_SECONDS, write_heartbeat
from triplewire.config.tracing import open_tracer
from triplewire.model.clock import Clock
from triplewire.model.errors import TriplewireError, Unavailable
from triplewire.pipeline.books import Course
from triplewire.pipeline.costs import Costs
from triplewire.pipeline.erasures import Eraser
from triplewire.pipeline.housekeeper import Housekeeper, Keeping, Rules
from triplewire.pipeline.ongoing import ONGOING, start_ongoing
from triplewire.pipeline.ports import Ports
from triplewire.pipeline.queries import SLOW, Work, start_match, start_slow, start_store
from triplewire.pipeline.session import start_session
from triplewire.pipeline.tasks import run
from triplewire.pipeline.warmup import keep_warm, warm
from triplewire.storage.lake.maintenance import MaintenanceContext
from triplewire.storage.log.ports import LogRetention

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
WARM_BEATS = 15
"""Heartbeats between two touches of the workers: half a minute, of the minute that Spark bears with them."""
TRIM_BEATS = 150
"""Heartbeats between two looks at what retention lets go: five minutes."""


@dataclass(frozen=True)
class Application:
    """Everything that a running pipeline is made of."""

    settings: Settings
    ports: Ports
    clock: Clock
    house: MaintenanceContext
    rules: Rules

    def run(self, stop: Flag) -> None:
        """Run until `stop` is set. Raises Conflict if another pipeline has this data, Unavailable if a query failed."""
        with _alone(self.settings.data):
            self._beat("starting")
            try:
                self._serve(stop)
            except BaseException as error:
                self._beat("failed", error=str(error)[:500])
                raise
            self._beat("stopped")

    def _serve(self, stop: Flag) -> None:
        settings, began = self.settings, self.clock.now()
        spark = start_session(
            "triplewire", settings.master, settings.driver_memory, objects=settings.log_format == JSON
        )
        traces = open_tracer(settings.traces, "pipeline", settings.trace_ratio)
        work = Work(spark, self.ports, settings.checkpoints, Costs.of(spark.sparkContext), traces=traces)
        try:
            queries = self._started(work, stop)
            _give_back(spark)
            house = replace(self.house, run=partial(run, spark))
            keeper = Housekeeper(house, self.rules, self.clock)
            keeping = Keeping(keeper, self._eraser(house, began), spark.sparkContext)
            try:
                self._watch(work, queries, keeper, stop)
            finally:
                keeping.stop()
        finally:
            for query in spark.streams.active:
                query.stop()
            spark.stop()
            if traces is not None:
                traces.close()

    def _eraser(self, house: MaintenanceContext, began: int) -> Eraser:
        memory = self.settings.query_seconds + PREPARE_SECONDS
        return Eraser(self.ports.open_stores(), house, self.clock, memory, began)

    def _started(self, work: Work, stop: Flag) -> list[StreamingQuery]:
        """Both queries, once each has passed a mark that is set now, on workers that are warm."""
        ports = self.ports
        warming = Thread(target=warm, args=(work.spark, ports, work.costs), daemon=True)
        warming.start()
        queries = [start_match(work, self.settings.match_interval), start_store(work, self.settings.store_interval)]
        (mark,) = ports.open_registry().put([("pipeline", "start", {"pid": os.getpid(), "at": self.clock.now()})])
        outbox, lake = ports.open_outbox(""), ports.open_lake()
        while min(outbox.head(), lake.files().upto) < mark and not stop.wait(LOOK_SECONDS):
            _check(queries)
            self._beat("starting")
        warming.join()
        return queries

    def _watch(self, work: Work, queries: list[StreamingQuery], keeper: Housekeeper, stop: Flag) -> None:
        beats = 0
        while not stop.is_set() and not is_orphaned(self.settings):
            _check(queries)
            self._widen(work, queries)
            progress = {query.name: _progress(query) for query in queries}
            if ONGOING in progress:
                progress[ONGOING] |= work.ongoing
            self._beat("ready", cpu=work.costs.seconds(), limits=dict(work.reached), lake=keeper.state(), **progress)
            if beats % WARM_BEATS == 0:
                keep_warm(work.spark)
            if beats % TRIM_BEATS == 0:
                self._trim()
            beats += 1
            stop.wait(HEARTBEAT_SECONDS)

    def _widen(self, work: Work, queries: list[StreamingQuery]) -> None:
        """Open the slow lane, once something is in it, and begin with continuous queries, once there are any: after the
        others, which are waited for."""
        if all(query.name != SLOW for query in queries):
            slow = start_slow(work, self.settings.match_interval)
            queries += [] if slow is None else [slow]
        if all(query.name != ONGOING for query in queries):
            ongoing = start_ongoing(work, self._course(work))
            queries += [] if ongoing is None else [ongoing]

    def _course(self, work: Work) -> Course:
        settings = self.settings
        return Course(
            path=settings.ongoing.absolute(),
            stations=settings.stations or work.cores,
            spread=settings.strategy == "csbv",
            interval=settings.match_interval,
        )

    def _trim(self) -> None:
        """Let go of what is older than retention allows and was both matched and stored, and of its matches. The slow
        lane and continuous queries are not waited for: they could fill the disk."""
        log, outbox = self.ports.open_log(), self.ports.open_outbox("")
        others = self.ports.open_slow(""), self.ports.open_ongoing("")
        done = min(outbox.head(), self.ports.open_lake().files().upto)
        try:
            log.trim(LogRetention(LOG_AGE_SECONDS, LOG_BYTES), before=done)
            oldest = min(log.begin(), done)
            outbox.trim(before=oldest)
            for each in others:
                each.trim(before=oldest)
        except TriplewireError as error:
            logger.warning("the log was not trimmed: %s", error)

    def _beat(self, state: str, **detail: object) -> None:
        write_heartbeat(self.settings.heartbeat, self.clock, state, detail)


def _check(queries: list[StreamingQuery]) -> None:
    for query in queries:
        failure = query.exception()
        if failure or not query.isActive:
            raise Unavailable(f"the {query.name} query ended: {failure}")


def _progress(query: StreamingQuery) -> dict[str, object]:
    last = query.lastProgress
    return {"batch": last.batchId, "rows": last.numInputRows, "milliseconds": dict(last.durationMs)} if last else {}


def _give_back(spark: SparkSession) -> None:
    """Starting fills the heap with what is never needed again; a collection lets the JVM return it."""
    spark.sparkContext._jvm.System.gc()  # type: ignore[union-attr]


@contextmanager
def _alone(data: Path) -> Iterator[None]:
    """Two pipelines on the same data would store everything twice, so the second does not start."""
    prepare_directory(data)
    with file_lock(data / "pipeline.lock", f"another pipeline is running on {data}"):
        yield
