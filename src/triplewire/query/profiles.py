"""Profiles: what an engine did to answer a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Profile:
    """How many rows came out, how long it took, how many of the lake's files were read of how many there are, whether
    a copy in memory was read instead, and the engine's own account of its plan."""

    rows: int
    seconds: float
    files_read: int
    files: int
    plan: str
    copied: bool = False


def of_duckdb(document: Mapping[str, Any], files: int, plan: str, *, copied: bool) -> Profile:
    """From what `EXPLAIN (ANALYZE, FORMAT JSON)` says. A file is one row group, but for very large ones, so that the
    scan that touched most row groups tells how many files were read."""
    operators = [*_operators(document["operator"])]
    scans = [each.get("row_groups_scanned", 0) for each in operators if each["type"] == "TABLE_SCAN"]
    return Profile(
        rows=_rows(document["operator"][0]),
        seconds=sum(each["timing"] for each in operators),
        files_read=0 if copied else min(files, max(scans, default=0)),
        files=files,
        plan=plan,
        copied=copied,
    )


def _rows(operator: Mapping[str, Any]) -> int:
    """How many rows came out of an operator. Some are only a place for others, and have none of their own."""
    children = operator.get("children", [])
    if operator["type"] == "UNION":
        return sum(map(_rows, children))
    if operator["type"] in ("RESULT_COLLECTOR", "EXPLAIN_ANALYZE", "CTE"):
        return _rows(children[-1])
    return int(operator["intermediate_rows"])


def _operators(operators: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for each in operators:
        yield each
        yield from _operators(each.get("children", []))
