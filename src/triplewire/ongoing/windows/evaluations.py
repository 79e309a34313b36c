"""Evaluations: a query asked of what its windows show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import duckdb

from triplewire.allowances import TOO_MUCH, Allowance
from triplewire.config import limits
from triplewire.model.errors import QueryLimit
from triplewire.ongoing.windows.backdrops import Backdrop
from triplewire.ongoing.windows.contents import Stored
from triplewire.ongoing.windows.panes import Content
from triplewire.ongoing.windows.plans import Plan
from triplewire.ongoing.windows.views import View

Row: TypeAlias = tuple[str | None, ...]
Rows: TypeAlias = tuple[Row, ...]

_ALIVE = 4
"""Contents of windows that are tables at the same time: queries with the same windows are asked one after the other."""


@dataclass(frozen=True)
class Asked:
    """What a query is asked by: its plan, and what is in no window."""

    plan: Plan
    backdrop: Backdrop | None = None


class Evaluator:
    """Works in the engine of a place. What was asked in a turn is not asked again in it."""

    def __init__(self, duck: duckdb.DuckDBPyConnection, stored: Callable[[str], Stored]) -> None:
        self._duck, self._stored = duck, stored
        self._answers: dict[object, Rows] = {}
        self._tables: dict[object, str] = {}
        self._count = 0

    def answer(self, asked: Asked, view: View) -> Rows:
        """The solutions, in an order that is always the same. Raises QueryLimit for a query that takes too much, or has
        too many of them."""
        sql = asked.plan.sql(view.instant.moment)
        key = sql, asked.backdrop, view.key
        if key not in self._answers:
            self._answers[key] = self._asked(asked, sql, view)
        return self._answers[key]

    def forget(self) -> None:
        """The turn is over."""
        self._answers = {}
        while self._tables:
            self._drop()

    def _asked(self, asked: Asked, sql: str, view: View) -> Rows:
        try:
            with Allowance(self._duck, limits.WINDOW_CPU_SECONDS):
                self._prepare(asked, view)
                found = self._duck.execute(sql).fetchmany(limits.WINDOW_ROWS + 1)
        except TOO_MUCH:
            message = f"it takes more than {limits.WINDOW_CPU_SECONDS:g} s of CPU time, or {limits.WINDOW_MEMORY}"
            raise QueryLimit(message) from None
        except duckdb.Error as error:
            raise QueryLimit(f"the engine does not get through it: {error}") from error
        if len(found) > limits.WINDOW_ROWS:
            raise QueryLimit(f"its answer has more than {limits.WINDOW_ROWS} solutions")
        width = len(asked.plan.names)
        return tuple(row[:width] for row in found)

    def _prepare(self, asked: Asked, view: View) -> None:
        for number, (clause, content) in enumerate(zip(asked.plan.windows, view.contents, strict=True)):
            table = self._table(asked.plan, clause.stream, content)
            self._duck.execute(f"CREATE OR REPLACE TEMP VIEW window_{number} AS FROM {table}")
        if asked.backdrop is not None:
            asked.backdrop.show()

    def _table(self, plan: Plan, stream: str, content: Content) -> str:
        """A table of what is in a window. It is made anew for each, in the order of positions, so that nothing depends
        on how the contents came together."""
        key = stream, plan.columns, content.key
        table = self._tables.pop(key, None) or self._made_of(plan, stream, content)
        # The oldest goes first, so that none goes which the same query is about to read.
        self._tables[key] = table
        while len(self._tables) > max(_ALIVE, len(plan.windows)):
            self._drop()
        return table

    def _made_of(self, plan: Plan, stream: str, content: Content) -> str:
        self._count += 1
        table = f"shown_{self._count}"
        selected = self._stored(stream).selected(content.positions, sorted(plan.columns) or ["position"])
        only = selected.replace("SELECT", "SELECT DISTINCT", 1) if plan.triples else selected
        self._duck.execute(f"CREATE TEMP TABLE {table} AS {only}")
        return table

    def _drop(self) -> None:
        self._duck.execute(f"DROP TABLE {self._tables.pop(next(iter(self._tables)))}")
