"""A process of queries: started by an edge, it answers over the socket that it was given, and ends with it."""

from __future__ import annotations

import socket
import sys

from triplewire.config import Settings
from triplewire.imports import hide


def run_queries(settings: Settings, connection: socket.socket) -> None:
    """Answer with DuckDB until the other side is gone."""
    from triplewire.lake.delta import DeltaLake
    from triplewire.query.compilers import Compiler
    from triplewire.query.duck import Duck
    from triplewire.query.history import History
    from triplewire.query.requests import Bounds
    from triplewire.query.worker import Worker

    bounds = Bounds.from_settings(settings)
    compiler = Compiler("duckdb", settings.services)
    history = History(
        DeltaLake(settings.lake),
        Duck(settings.lake, bounds),
        bounds,
        compiler=compiler,
        spark_bytes=settings.spark_bytes,
    )
    Worker(connection, history).run()


def main() -> None:
    hide("pandas")
    from triplewire.query.confines import confine

    settings = Settings.from_environment()
    confine(settings.query_memory)
    run_queries(settings, socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
