"""A process of queries: started by an edge, it answers over the socket that it was given, and ends with it.

`python -m triplewire.compose.query duckdb|spark SOCKET`, with the settings in the environment. Imports stand inside of
functions, because what the one engine needs the other must not load.
"""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING

from triplewire.config import Settings
from triplewire.imports import hide
from triplewire.telemetry.logs import write_logs

if TYPE_CHECKING:
    from triplewire.lake.reads import Tally
    from triplewire.query.history import History
    from triplewire.query.ontologies import Ontologies


def duckdb_history(settings: Settings) -> History:
    """Answers what one machine should; the rest is left to Spark."""
    hide("pandas")
    from triplewire.lake.delta import DeltaLake
    from triplewire.query.compilers import Compiler
    from triplewire.query.confines import confine
    from triplewire.query.duck import Duck
    from triplewire.query.history import History
    from triplewire.query.records import Records
    from triplewire.query.requests import Bounds

    bounds = Bounds.from_settings(settings)
    confine(bounds.memory)
    lake, records = DeltaLake(settings.lake), Records(settings.statistics)
    engine = Duck(settings.lake, bounds, reads=_tally(settings), records=records)
    compiler = Compiler("duckdb", settings.services, _ontologies(settings))
    return History(lake, engine, bounds, compiler=compiler, spark_bytes=settings.spark_bytes)


def spark_history(settings: Settings) -> History:
    """Answers everything. The session holds itself to the memory that it was given."""
    from triplewire.lake.delta import DeltaLake
    from triplewire.pipeline.session import start_session
    from triplewire.query.compilers import Compiler
    from triplewire.query.history import History
    from triplewire.query.requests import Bounds
    from triplewire.query.spark_engine import Spark

    session = start_session("triplewire-queries", settings.master, settings.driver_memory)
    engine = Spark(session, _tally(settings))
    compiler = Compiler("spark", settings.services, _ontologies(settings))
    return History(DeltaLake(settings.lake), engine, Bounds.from_settings(settings), compiler=compiler)


def _tally(settings: Settings) -> Tally:
    from triplewire.clock import SystemClock
    from triplewire.lake.reads import Tally

    return Tally(settings.reads, SystemClock())


def _ontologies(settings: Settings) -> Ontologies:
    from triplewire.clock import SystemClock
    from triplewire.query.ontologies import Ontologies
    from triplewire.registry.sqlite import SqliteRegistry

    return Ontologies(SqliteRegistry(settings.log, SystemClock()))


def main() -> None:
    engine, handle = sys.argv[1:]
    make = {"duckdb": duckdb_history, "spark": spark_history}[engine]
    settings = Settings.from_environment()
    write_logs(settings.log_format, "query")
    history = make(settings)
    from triplewire.query.worker import Worker

    Worker(socket.socket(fileno=int(handle)), history).run()


if __name__ == "__main__":
    main()
