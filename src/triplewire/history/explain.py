"""EXPLAIN: how a query is answered, as text for people and as JSON for programs.

A client that does not see everything gets a redacted form without counts, estimates, files, times and the engine's own
plan, all of which depend on hidden data; its plan is made without a look at the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import sqlglot

from triplewire.history.engines import QueryProfile
from triplewire.history.pruning import count_zones
from triplewire.sparql import CompiledQuery, Dialect, Query, Statistics
from triplewire.sparql.optimizer import optimize_query
from triplewire.sparql.serialization import describe_algebra, format_algebra


@dataclass(frozen=True)
class QueryExplain:
    """The algebra as it was asked and as it was planned, the SQL, and what the engine did with it."""

    dialect: Dialect
    asked: Query
    planned: Query
    compiled: CompiledQuery
    compile_seconds: float
    profile: QueryProfile

    def write(self, form: str) -> bytes:
        return self.text().encode() if form == "text" else orjson.dumps(self.value(), option=orjson.OPT_INDENT_2)

    def text(self) -> str:
        return "\n".join(f"{title}\n{'─' * len(title)}\n{body}\n" for title, body in self._parts())

    def value(self) -> dict[str, Any]:
        profile, scanned = self.profile, self.profile.scanned
        files = scanned.snapshot.files
        return {
            "engine": self.dialect,
            "algebra": describe_algebra(self.asked.where),
            "plan": describe_algebra(self.planned.where),
            "steps": [{"name": step.name, "sql": step.sql} for step in self.compiled.steps],
            "sql": self.compiled.sql,
            "compile_ms": round(1_000 * self.compile_seconds, 3),
            "run_ms": round(1_000 * profile.seconds, 3),
            "rows": profile.rows,
            "files": {"read": len(scanned.files), "of": len(files), "copied": profile.copied},
            "zones": {"read": len(scanned.zones), "of": len(count_zones(files))},
            "scans": {alias: len(numbers) for alias, numbers in scanned.scans.items()},
            "engine_plan": profile.plan,
        }

    def _parts(self) -> Iterator[tuple[str, str]]:
        yield "Algebra", format_algebra(self.asked.where)
        yield "Plan", format_algebra(self.planned.where)
        for step in self.compiled.steps:
            yield f"Step {step.name}", self._pretty(step.sql)
        yield f"SQL for {self.dialect}", self._pretty(self.compiled.sql)
        yield "Run", self._run()
        yield f"What {self.dialect} did", self.profile.plan

    def _run(self) -> str:
        profile, scanned = self.profile, self.profile.scanned
        files = scanned.snapshot.files
        said = [f"{profile.rows} rows, {len(scanned.files)} of {len(files)} files"]
        if tiled := count_zones(files):
            said.append(f" and {len(scanned.zones)} of {len(tiled)} zones")
        said.append(" read, but their copy in memory" if profile.copied else " read")
        if scanned.scans:
            said.append(f" ({', '.join(f'{alias} {len(numbers)}' for alias, numbers in scanned.scans.items())})")
        said.append(f", {1_000 * profile.seconds:.1f} ms, compiled in {1_000 * self.compile_seconds:.1f} ms")
        return "".join(said)

    def _pretty(self, sql: str) -> str:
        return sqlglot.parse_one(sql, dialect=self.dialect).sql(dialect=self.dialect, pretty=True)


# Outlooks: how a query is answered, as it is told to somebody who does not see everything.
#
# Counts, estimates, files, times and the engine's own plan depend on what is out of sight, and so are not in it. The
# plan is one that was made without a look at the data.


@dataclass(frozen=True)
class RedactedExplain:
    """The algebra as it was asked and planned, the SQL over what is in sight, and how many rows the answer has."""

    dialect: Dialect
    asked: Query
    compiled: CompiledQuery
    rows: int

    def write(self, form: str) -> bytes:
        return self.text().encode() if form == "text" else orjson.dumps(self.value(), option=orjson.OPT_INDENT_2)

    def text(self) -> str:
        return "\n".join(f"{title}\n{'─' * len(title)}\n{body}\n" for title, body in self._parts())

    def value(self) -> dict[str, Any]:
        return {
            "engine": self.dialect,
            "algebra": describe_algebra(self.asked.where),
            "plan": describe_algebra(self._planned.where),
            "steps": [{"name": step.name, "sql": step.sql} for step in self.compiled.steps],
            "sql": self.compiled.sql,
            "rows": self.rows,
            "sight": "partial",
        }

    @property
    def _planned(self) -> Query:
        return optimize_query(self.asked, Statistics())

    def _parts(self) -> Iterator[tuple[str, str]]:
        yield "Algebra", format_algebra(self.asked.where)
        yield "Plan", format_algebra(self._planned.where)
        for step in self.compiled.steps:
            yield f"Step {step.name}", self._pretty(step.sql)
        yield f"SQL for {self.dialect}", self._pretty(self.compiled.sql)
        yield "Run", f"{self.rows} rows, over what is in sight"

    def _pretty(self, sql: str) -> str:
        return sqlglot.parse_one(sql, dialect=self.dialect).sql(dialect=self.dialect, pretty=True)
