"""Outlooks: how a query is answered, as it is told to somebody who does not see everything.

Counts, estimates, files, times and the engine's own plan depend on what is out of sight, and so are not in it. The plan
is one that was made without a look at the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import sqlglot

from triplewire.sparql import Compiled, Dialect, Query, Statistics
from triplewire.sparql.outlines import outline, outlined
from triplewire.sparql.rules import planned


@dataclass(frozen=True)
class Outlook:
    """The algebra as it was asked and planned, the SQL over what is in sight, and how many rows the answer has."""

    dialect: Dialect
    asked: Query
    compiled: Compiled
    rows: int

    def write(self, form: str) -> bytes:
        return self.text().encode() if form == "text" else orjson.dumps(self.value(), option=orjson.OPT_INDENT_2)

    def text(self) -> str:
        return "\n".join(f"{title}\n{'─' * len(title)}\n{body}\n" for title, body in self._parts())

    def value(self) -> dict[str, Any]:
        return {
            "engine": self.dialect,
            "algebra": outlined(self.asked.where),
            "plan": outlined(self._planned.where),
            "steps": [{"name": step.name, "sql": step.sql} for step in self.compiled.steps],
            "sql": self.compiled.sql,
            "rows": self.rows,
            "sight": "partial",
        }

    @property
    def _planned(self) -> Query:
        return planned(self.asked, Statistics())

    def _parts(self) -> Iterator[tuple[str, str]]:
        yield "Algebra", outline(self.asked.where)
        yield "Plan", outline(self._planned.where)
        for step in self.compiled.steps:
            yield f"Step {step.name}", self._pretty(step.sql)
        yield f"SQL for {self.dialect}", self._pretty(self.compiled.sql)
        yield "Run", f"{self.rows} rows, over what is in sight"

    def _pretty(self, sql: str) -> str:
        return sqlglot.parse_one(sql, dialect=self.dialect).sql(dialect=self.dialect, pretty=True)
