"""Aims: what a measure should reach, beside what a report has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Aim:
    """A measure by its path in the report, and what it should reach: at least, or at most."""

    title: str
    path: tuple[str, ...]
    bound: float
    unit: str
    least: bool = False

    def reached(self, report: Mapping[str, Any]) -> float:
        found: Any = report
        for name in self.path:
            found = found[name]
        return float(found)

    def met(self, report: Mapping[str, Any]) -> bool:
        return (self.reached(report) >= self.bound) if self.least else (self.reached(report) <= self.bound)

    def told(self) -> str:
        return f"{'at least' if self.least else 'at most'} {self.bound:g}{self.unit}"
