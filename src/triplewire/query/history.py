"""History: SPARQL over everything that was ever published, answered by DuckDB from the lake's files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Timer
from typing import Any

import duckdb

from triplewire.config.limits import QUERIES_AT_ONCE, QUERY_MEMORY, QUERY_ROWS, QUERY_SECONDS
from triplewire.errors import QueryLimit
from triplewire.lake.ports import Lake, Snapshot
from triplewire.lake.quads import QUADS
from triplewire.model.results import document, verdict
from triplewire.sparql import compile_history, parse, to_sql
from triplewire.sparql.conjunctions import Conjunction


@dataclass(frozen=True)
class Bounds:
    """What one query may use before it is ended."""

    seconds: float = QUERY_SECONDS
    memory: str = QUERY_MEMORY
    rows: int = QUERY_ROWS


class History:
    """Answers queries, a few at a time, each in a thread of its own; others wait their turn."""

    def __init__(self, lake: Lake, bounds: Bounds | None = None) -> None:
        self._lake = lake
        self._bounds = bounds or Bounds()
        self._threads = ThreadPoolExecutor(QUERIES_AT_ONCE, thread_name_prefix="query")

    async def answer(self, text: str) -> Mapping[str, Any]:
        """A SPARQL JSON results document. Raises SparqlSyntax, Unsupported or QueryLimit."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.answer_now, text)

    def answer_now(self, text: str) -> Mapping[str, Any]:
        """The same, in the calling thread."""
        query = parse(text)
        rows = self._run(query)
        if query.form == "ask":
            return verdict(bool(rows[0][0]))
        return document(query.projection, rows)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, query: Conjunction) -> list[tuple[Any, ...]]:
        snapshot = self._lake.files()
        bounds = self._bounds
        with _connection(snapshot, bounds.memory) as duck:
            alarm = Timer(bounds.seconds, duck.interrupt)
            alarm.start()
            try:
                rows = duck.execute(to_sql(compile_history(query), "duckdb")).fetchmany(bounds.rows + 1)
            except duckdb.InterruptException:
                raise QueryLimit(f"the query ran for more than {bounds.seconds:g} s; ask for less at a time") from None
            except duckdb.OutOfMemoryException:
                raise QueryLimit(
                    f"the query needs more than {bounds.memory} of memory; ask for less at a time"
                ) from None
            finally:
                alarm.cancel()
        if len(rows) > bounds.rows:
            raise QueryLimit(f"the answer has more than {bounds.rows} rows; add a LIMIT")
        return rows


def _connection(snapshot: Snapshot, memory: str) -> duckdb.DuckDBPyConnection:
    duck = duckdb.connect(config={"memory_limit": memory, "autoload_known_extensions": False, "threads": 2})
    duck.execute("SET TimeZone = 'UTC'")
    duck.execute(f"CREATE TEMP VIEW quads AS {_quads(snapshot)}")
    metadata = "position, graph, stream, source, application, time, received"
    duck.execute(f"CREATE TEMP VIEW events AS SELECT {metadata} FROM quads WHERE quad = 0")
    return duck


def _quads(snapshot: Snapshot) -> str:
    """The table's files as one relation. Paths come from the table's own log, never from a user."""
    if not snapshot.files:
        columns = ", ".join(f"CAST(NULL AS {_type(field.name)}) AS {field.name}" for field in QUADS)
        return f"SELECT {columns} WHERE false"
    paths = ", ".join("'" + path.replace("'", "''") + "'" for path in snapshot.files)
    plain = ", ".join(f"CAST({name} AS TIMESTAMP) AS {name}" for name in ("object_time", "time", "received"))
    return f"SELECT * REPLACE ({plain}) FROM read_parquet([{paths}])"


def _type(name: str) -> str:
    if name in ("object_time", "time", "received"):
        return "TIMESTAMP"
    return {"position": "BIGINT", "quad": "INTEGER", "object_number": "DOUBLE"}.get(name, "VARCHAR")
