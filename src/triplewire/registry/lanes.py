"""Lanes as registry entries: which shapes are matched apart from the others, because they take long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triplewire.registry.ports import Change

LANE = "lane"


@dataclass(frozen=True)
class Lane:
    """Of a shape, by its key: events at positions above `since` are matched against it in the slow lane."""

    shape: str
    cost: float
    """The CPU seconds that an event took when it was moved."""
    since: int = 0


def to_value(lane: Lane) -> Mapping[str, Any]:
    """What is stored under (`lane`, key of the shape)."""
    return {"cost": lane.cost}


def from_change(change: Change) -> Lane:
    """The lane that a change set. A shape stays in it."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    return Lane(change.key, change.value["cost"], change.position)
