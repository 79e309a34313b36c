"""EXPLAIN: how a query is answered, as text for people and as JSON for programs.

A client that does not see everything gets a redacted form without counts, estimates, files, times and the engine's own
plan, all of which depend on hidden data; its plan is made without a look at the data.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import sqlglot

from triplewire.history.engines import QueryProfile
from triplewire.history.pruning import count_zones
from triplewire.sparql import CompiledQuery, Dialect, Query
from triplewire.sparql.serialization import describe_algebra, format_algebra


@dataclass(frozen=True)
class _Explain:
    """The parsed algebra, the plan and the SQL, as both forms have them."""

    dialect: Dialect
    parsed: Query
    compiled: CompiledQuery
    planned: Query

    def write(self, form: str) -> bytes:
        return self.text().encode() if form == "text" else orjson.dumps(self.value(), option=orjson.OPT_INDENT_2)

    def text(self) -> str:
        return "\n".join(f"{title}\n{'─' * len(title)}\n{body}\n" for title, body in self._sections())

    def value(self) -> dict[str, Any]:
        return {
            "engine": self.dialect,
            "algebra": describe_algebra(self.parsed.where),
            "plan": describe_algebra(self.planned.where),
            "steps": [{"name": step.name, "sql": step.sql} for step in self.compiled.steps],
            "sql": self.compiled.sql,
            **self._run_value(),
        }

    def _sections(self) -> Iterator[tuple[str, str]]:
        yield "Algebra", format_algebra(self.parsed.where)
        yield "Plan", format_algebra(self.planned.where)
        for step in self.compiled.steps:
            yield f"Step {step.name}", self._pretty(step.sql)
        yield f"SQL for {self.dialect}", self._pretty(self.compiled.sql)
        yield from self._run_sections()

    def _pretty(self, sql: str) -> str:
        return sqlglot.parse_one(sql, dialect=self.dialect).sql(dialect=self.dialect, pretty=True)

    @abstractmethod
    def _run_value(self) -> dict[str, Any]: ...

    @abstractmethod
    def _run_sections(self) -> Iterator[tuple[str, str]]: ...


@dataclass(frozen=True)
class QueryExplain(_Explain):
    """EXPLAIN for a client that sees everything: with the profile of a run."""

    compile_seconds: float
    profile: QueryProfile

    def _run_value(self) -> dict[str, Any]:
        profile, scanned = self.profile, self.profile.scanned
        files = scanned.snapshot.files
        return {
            "compile_ms": round(1_000 * self.compile_seconds, 3),
            "run_ms": round(1_000 * profile.seconds, 3),
            "rows": profile.rows,
            "files": {"read": len(scanned.files), "of": len(files), "copied": profile.copied},
            "indexed": profile.indexed,
            "zones": {"read": len(scanned.zones), "of": len(count_zones(files))},
            "scans": {alias: len(numbers) for alias, numbers in scanned.scans.items()},
            "engine_plan": profile.plan,
        }

    def _run_sections(self) -> Iterator[tuple[str, str]]:
        profile, scanned = self.profile, self.profile.scanned
        files = scanned.snapshot.files
        run = [f"{profile.rows} rows, {len(scanned.files)} of {len(files)} files"]
        if zones := count_zones(files):
            run.append(f" and {len(scanned.zones)} of {len(zones)} zones")
        copied = " read, but the index of their copy" if profile.indexed else " read, but their copy in memory"
        run.append(copied if profile.copied else " read")
        if scanned.scans:
            run.append(f" ({', '.join(f'{alias} {len(numbers)}' for alias, numbers in scanned.scans.items())})")
        run.append(f", {1_000 * profile.seconds:.1f} ms, compiled in {1_000 * self.compile_seconds:.1f} ms")
        yield "Run", "".join(run)
        yield f"What {self.dialect} did", profile.plan


@dataclass(frozen=True)
class RedactedExplain(_Explain):
    """EXPLAIN for a client that does not see everything: a plan without statistics, and the rows of its answer."""

    rows: int

    def _run_value(self) -> dict[str, Any]:
        return {"rows": self.rows, "visibility": "partial"}

    def _run_sections(self) -> Iterator[tuple[str, str]]:
        yield "Run", f"{self.rows} rows, over what is visible"
