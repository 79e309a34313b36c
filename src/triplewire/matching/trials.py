"""Trials: one event that many queries are asked of, one after the other, to find out what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Timer
from types import TracebackType
from typing import Any

import duckdb
import pyarrow as pa

from triplewire.config import limits
from triplewire.matching.ontologies import Closures
from triplewire.model import ENTRIES, MATCHED_COLUMNS
from triplewire.model.clock import Clock, SystemClock
from triplewire.model.errors import QueryLimit
from triplewire.model.terms import parse_literal
from triplewire.sparql import Query, compile_subscription, explode, to_sql
from triplewire.sparql.algebra import Aggregate, Group, Operator, Select
from triplewire.sparql.dialects.duckdb import register_functions
from triplewire.sparql.queries import ensure_recursion_limit
from triplewire.storage.registry.ports import RegistryChange

_SCHEMA = pa.schema([ENTRIES.field(name) for name in MATCHED_COLUMNS])
_TABLES = (
    f"CREATE TEMP TABLE quads AS {to_sql(explode('entries'), 'duckdb')}",
    "CREATE TEMP VIEW events AS SELECT * FROM quads WHERE quad = 0",
    "CREATE TEMP TABLE constants AS SELECT CAST(1 AS BIGINT) AS subscription",
)
_COUNT = "n"

Solution = Mapping[str, str | None]


class Trial:
    """An event, a row of an `ENTRIES` table, as tables of an engine of its own. Belongs to one thread; to be closed.

    `ontologies` are changes that load what ontological operators go by. Every question raises QueryLimit when all of
    them together took too long, or one took too much memory.
    """

    def __init__(
        self,
        entry: Mapping[str, Any],
        ontologies: Sequence[RegistryChange] = (),
        clock: Clock | None = None,
        seconds: float = limits.EXPLAIN_SECONDS,
    ) -> None:
        ensure_recursion_limit()
        self._clock = clock or SystemClock()
        self._deadline = self._clock.ticks() + seconds
        config: dict[str, Any] = {"threads": 1, "memory_limit": limits.EXPLAIN_MEMORY, "temp_directory": ""}
        self._duck = duckdb.connect(config={**config, "autoload_known_extensions": False})
        register_functions(self._duck)
        closures = Closures(self._duck)
        for change in ontologies:
            closures.apply(change)
        closures.prepare()
        row = {name: entry[name] for name in MATCHED_COLUMNS}
        self._duck.register("entries", pa.Table.from_pylist([row], schema=_SCHEMA))
        for statement in _TABLES:
            self._duck.execute(statement)

    def __enter__(self) -> Trial:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._duck.close()

    def count(self, operator: Operator) -> int:
        """How many solutions it has on the event."""
        counted = Group(operator, (), ((_COUNT, Aggregate("count")),))
        ((term,),) = self._rows(Select(counted, (_COUNT,)))
        return int(parse_literal(term or "").lexical)

    def some(self, operator: Operator, names: Sequence[str]) -> list[Solution]:
        """A few of its solutions, what they say of these variables, each once; always the same ones."""
        few = Select(operator, tuple(names), distinct=True, limit=limits.EXPLAIN_EXAMPLES)
        return [dict(zip(names, row, strict=True)) for row in self._rows(few)]

    def _rows(self, select: Select) -> list[tuple[str | None, ...]]:
        query = Query("select", select, select.projection)
        found = self._answer(to_sql(compile_subscription(query, solutions=True), "duckdb"))
        width = 1 + len(select.projection)
        terms = found[0][-1] if found else []
        return [tuple(terms[start + 1 : start + width]) for start in range(0, len(terms), width)]

    def _answer(self, sql: str) -> list[Any]:
        left = self._deadline - self._clock.ticks()
        if left <= 0:
            raise _over()
        alarm = Timer(left, self._duck.interrupt)
        alarm.start()
        try:
            return self._duck.execute(sql).fetchall()
        except (duckdb.InterruptException, duckdb.OutOfMemoryException):
            raise _over() from None
        finally:
            alarm.cancel()


def _over() -> QueryLimit:
    return QueryLimit(
        f"the explanation took more than {limits.EXPLAIN_SECONDS:g} s or {limits.EXPLAIN_MEMORY}: "
        "some part of the query has very many solutions on the event"
    )
