"""Profiles: what an engine did to answer a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from triplewire.query.prunings import Scanned


@dataclass(frozen=True)
class Profile:
    """How many rows came out, how long it took, which of the lake's files were read, whether a copy in memory was read
    instead, and the engine's own account of its plan."""

    rows: int
    seconds: float
    scanned: Scanned
    plan: str
    copied: bool = False


def measured(document: Mapping[str, Any]) -> tuple[int, float]:
    """Rows and seconds, from what DuckDB's `EXPLAIN (ANALYZE, FORMAT JSON)` says."""
    operators = document["operator"]
    return _rows(operators[0]), sum(each["timing"] for each in _operators(operators))


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
