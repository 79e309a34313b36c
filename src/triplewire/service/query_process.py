"""The query process: started by an edge, it answers over an inherited socket and ends with it.

`python -m triplewire.service.query_process duckdb|spark SOCKET`, with the settings in the environment. Imports stand
inside functions, because neither engine may load the other's libraries.
"""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

from triplewire.config import Settings
from triplewire.config.logs import configure_logging
from triplewire.config.settings import hide

if TYPE_CHECKING:
    from triplewire.history.executor import HistoryExecutor, OntologyTables
    from triplewire.storage.lake.read_counts import ReadCounter


def duckdb_history(settings: Settings) -> HistoryExecutor:
    """Make the executor for queries that one machine can answer; it refers larger ones to Spark."""
    hide("pandas")
    from triplewire.history.dataset_statistics import StatisticsFile
    from triplewire.history.duckdb import DuckDbEngine
    from triplewire.history.executor import HistoryExecutor, QueryCompiler
    from triplewire.history.requests import QueryLimits
    from triplewire.history.worker import limit_resources
    from triplewire.storage.lake.delta import DeltaLake

    bounds = QueryLimits.from_settings(settings)
    limit_resources(bounds.memory)
    lake, records = DeltaLake(settings.lake), StatisticsFile(settings.statistics)
    engine = DuckDbEngine(settings.lake, bounds, reads=_read_counter(settings), records=records)
    compiler = QueryCompiler("duckdb", settings.services, _ontologies(settings))
    return HistoryExecutor(lake, engine, bounds, compiler=compiler, spark_bytes=settings.spark_bytes)


def spark_history(settings: Settings) -> HistoryExecutor:
    """Make the executor for queries of any size. The session limits its own memory."""
    from triplewire.history.executor import HistoryExecutor, QueryCompiler
    from triplewire.history.requests import QueryLimits
    from triplewire.spark.query_engine import SparkEngine
    from triplewire.spark.session import start_session
    from triplewire.storage.lake.delta import DeltaLake

    session = start_session("triplewire-queries", settings.master, settings.driver_memory)
    engine = SparkEngine(session, _read_counter(settings))
    compiler = QueryCompiler("spark", settings.services, _ontologies(settings))
    return HistoryExecutor(DeltaLake(settings.lake), engine, QueryLimits.from_settings(settings), compiler=compiler)


def _read_counter(settings: Settings) -> ReadCounter:
    from triplewire.model.clock import SystemClock
    from triplewire.storage.lake.read_counts import ReadCounter

    return ReadCounter(settings.read_counts, SystemClock())


def _ontologies(settings: Settings) -> OntologyTables:
    from triplewire.history.executor import OntologyTables
    from triplewire.model.clock import SystemClock
    from triplewire.storage.registry.sqlite import SqliteRegistry

    return OntologyTables(SqliteRegistry(settings.log, SystemClock()))


def main() -> None:
    engine, handle = sys.argv[1:]
    make = {"duckdb": duckdb_history, "spark": spark_history}[engine]
    settings = Settings.from_environment()
    configure_logging(settings.log_format, "query")
    history = make(settings)
    from triplewire.history.worker import QueryWorker

    QueryWorker(socket.socket(fileno=int(handle)), history).run()


if __name__ == "__main__":
    main()
