"""DuckDB: compiled queries over tables in memory."""

from __future__ import annotations

from threading import Timer

import duckdb

from tests.conformance.datasets import Dataset
from tests.conformance.engines import relations
from tests.conformance.engines.answers import answer
from tests.conformance.engines.ports import Refused
from tests.conformance.results import Answer
from triplewire.model.errors import SparqlSyntax, Unsupported
from triplewire.sparql import compile_query, parse_query
from triplewire.sparql.dialects import duckdb as dialect
from triplewire.sparql.queries import ensure_recursion_limit

_SECONDS = 60.0
"""How long a query may take: the suites are small, so what takes longer does not end."""


class DuckDB:
    """One connection for all cases, as making one is slow."""

    regimes = frozenset({"Simple"})

    def __init__(self) -> None:
        ensure_recursion_limit()
        self._connection = duckdb.connect(config={"threads": 1})
        self._dataset = Dataset()
        relations.make(self._connection, self._dataset)
        dialect.register_functions(self._connection)

    def parse(self, text: str, base: str) -> None:
        refuse(text, base)

    def load(self, dataset: Dataset) -> None:
        # Neighbours in a suite mostly share their data.
        if dataset != self._dataset:
            relations.make(self._connection, dataset)
            self._dataset = dataset

    def run(self, text: str, base: str) -> Answer:
        query = relations.scoped(parse_query(text, base), self._dataset)
        compiled = compile_query(query, "duckdb")
        deadline = Timer(_SECONDS, self._connection.interrupt)
        deadline.start()
        try:
            return answer(compiled, self._connection.sql(compiled.sql).to_arrow_table())
        finally:
            deadline.cancel()

    def close(self) -> None:
        self._connection.close()


def refuse(text: str, base: str) -> None:
    """Raises Refused for what our parser takes for no query."""
    try:
        parse_query(text, base)
    except SparqlSyntax as error:
        raise Refused(str(error)) from error
    except Unsupported:
        return


def start() -> DuckDB:
    return DuckDB()
