"""Engines: compiled queries on history, the default graph being the set of all triples."""

from __future__ import annotations

from typing import Protocol

from tests.conformance.engines.answers import answer
from tests.conformance.engines.duckdb import DuckDB
from tests.conformance.results import Answer
from tests.differential.data import Data
from triplewire.sparql import compile_query, parse_query


class Engine(Protocol):
    def take(self, data: Data) -> None:
        """Answer on this from now on."""

    def ask(self, text: str) -> Answer: ...

    def close(self) -> None: ...


class OnDuckDB(DuckDB):
    def take(self, data: Data) -> None:
        self.load(data.dataset((), data.graphs))

    def ask(self, text: str) -> Answer:
        compiled = compile_query(parse_query(text), "duckdb")
        return answer(compiled, self._connection.sql(compiled.sql).to_arrow_table())
