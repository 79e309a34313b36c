"""Queries: SPARQL over history for an event loop, each query in a process of its own."""

from __future__ import annotations

from triplewire.errors import Unsupported
from triplewire.query.answers import QueryAnswer
from triplewire.query.engines import Elsewhere
from triplewire.query.pools import Pool
from triplewire.query.requests import QueryRequest


class Queries:
    """Answers queries with DuckDB; with Spark, if there is one, where a query wishes for it or is too large."""

    def __init__(self, duckdb: Pool, spark: Pool | None = None) -> None:
        self._duckdb = duckdb
        self._spark = spark

    def start(self) -> None:
        """Get ready for the first query, in the background."""
        self._duckdb.warm()

    async def ask(self, request: QueryRequest) -> QueryAnswer:
        """An answer that has begun. Raises InputError, QueryLimit or Unavailable."""
        if request.engine == "spark":
            return await self._of_spark(request)
        try:
            return await self._duckdb.ask(request)
        except Elsewhere:
            return await self._of_spark(request)

    def close(self) -> None:
        """End all processes."""
        for pool in (self._duckdb, self._spark):
            if pool is not None:
                pool.close()

    async def _of_spark(self, request: QueryRequest) -> QueryAnswer:
        if self._spark is None:
            raise Unsupported("engine=spark", hint="this edge has no Spark; say engine=duckdb")
        return await self._spark.ask(request)
