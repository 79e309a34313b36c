"""Engines: compiled queries on history, the default graph being the set of all triples, and on each event alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tests.conformance.engines.answers import answer
from tests.conformance.engines.duckdb import DuckDB
from tests.conformance.graphs import Term
from tests.conformance.results import Answer, Rows
from tests.differential.cases import term
from tests.differential.data import Data
from triplewire.sparql import compile_query, compile_subscription, parse_query, to_sql


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


class OnEvents(OnDuckDB):
    """A subscription on each event alone."""

    def take(self, data: Data) -> None:
        super().take(data)
        self._graphs = data.graphs
        self._kept: tuple[str, dict[str, Answer]] | None = None
        self._connection.execute("CREATE OR REPLACE TABLE constants AS SELECT CAST(1 AS BIGINT) AS subscription")

    def ask_on(self, graph: str, text: str) -> Answer:
        """The answer on one event. All of them are answered at once, so the last answers are kept."""
        if self._kept is None or self._kept[0] != text:
            self._kept = (text, self._each(text))
        return self._kept[1][graph]

    def _each(self, text: str) -> dict[str, Answer]:
        query = parse_query(text)
        asking = query.form == "ask"
        sql = to_sql(compile_subscription(query, solutions=not asking), "duckdb")
        found = {row[0]: row[-1] for row in self._connection.execute(sql).fetchall()}
        if asking:
            return {graph: place in found for place, graph in enumerate(self._graphs, start=1)}
        width = len(query.projection)
        return {
            graph: Rows(query.projection, solutions(found.get(place, ()), width))
            for place, graph in enumerate(self._graphs, start=1)
        }


def solutions(texts: Sequence[str | None], width: int) -> tuple[tuple[Term | None, ...], ...]:
    """The rows of a flat list, which has before the terms of each solution its rank; they come in any order."""
    chunks = [texts[start : start + width + 1] for start in range(0, len(texts), width + 1)]
    ranked = sorted(chunks, key=lambda chunk: chunk[0] or "")
    return tuple(tuple(map(term, chunk[1:])) for chunk in ranked)
