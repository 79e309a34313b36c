"""Spark as an engine of these tests. On its own, as importing it takes its time."""

from __future__ import annotations

from tests.conformance.engines.answers import answer
from tests.conformance.engines.spark import Spark
from tests.conformance.results import Answer
from tests.differential.data import Data
from triplewire.spark import query_engine
from triplewire.sparql import compile_query, parse_query


class OnSpark(Spark):
    def take(self, data: Data) -> None:
        self.load(data.dataset((), data.graphs))

    def ask(self, text: str) -> Answer:
        compiled = compile_query(parse_query(text), "spark")
        return answer(compiled, query_engine.run_query(self._session, compiled))
