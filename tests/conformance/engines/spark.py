"""Spark: the same queries through Spark SQL, in one session for the whole run."""

from __future__ import annotations

import duckdb

from tests.conformance.datasets import Dataset
from tests.conformance.engines import relations
from tests.conformance.engines.answers import answer
from tests.conformance.engines.duckdb import refuse
from tests.conformance.results import Answer
from tests.spark.sessions import SMALL_QUERIES
from triplewire.spark import query_engine
from triplewire.spark.session import start_session
from triplewire.sparql import compile_query, parse_query
from triplewire.sparql.queries import ensure_recursion_limit

_VIEWS = ("quads", "events")


class Spark:
    """DuckDB makes the tables, as it does for the lake; Spark reads them."""

    regimes = frozenset({"Simple"})

    def __init__(self) -> None:
        ensure_recursion_limit()
        self._tables = duckdb.connect(config={"threads": 1})
        self._session = start_session("conformance", "local[2]", "1g")
        query_engine.configure_session(self._session)
        for name, value in SMALL_QUERIES.items():
            self._session.conf.set(name, value)
        self._dataset = Dataset()
        self._make(self._dataset)

    def parse(self, text: str, base: str) -> None:
        refuse(text, base)

    def load(self, dataset: Dataset) -> None:
        # Neighbours in a suite mostly share their data.
        if dataset != self._dataset:
            self._make(dataset)
            self._dataset = dataset

    def _make(self, dataset: Dataset) -> None:
        relations.make(self._tables, dataset)
        for name in _VIEWS:
            table = self._tables.table(name).to_arrow_table()
            self._session.createDataFrame(table).createOrReplaceTempView(name)

    def run(self, text: str, base: str) -> Answer:
        query = relations.scoped(parse_query(text, base), self._dataset)
        compiled = compile_query(query, "spark")
        return answer(compiled, query_engine.run_query(self._session, compiled))

    def close(self) -> None:
        self._session.stop()
        self._tables.close()


def start() -> Spark:
    return Spark()
