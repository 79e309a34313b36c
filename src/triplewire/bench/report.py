"""Reports: what a benchmark measured, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least that share of the values does not exceed; 0 for none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered)) - 1))]


def flat(report: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested measures as rows of a name and a value."""
    rows: list[tuple[str, Any]] = []
    for name, value in report.items():
        if isinstance(value, Mapping):
            rows.extend(flat(value, f"{prefix}{name}."))
        else:
            rows.append((prefix + name, value))
    return rows
