"""Leases as registry entries: until when a subscription stays that nobody listens to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triplewire.registry.ports import Change

LEASE = "lease"


@dataclass(frozen=True)
class Lease:
    """Of a subscription, by its id: how many seconds it lasts, and until when, in microseconds of the wall clock."""

    id: str
    seconds: float
    until: int

    @classmethod
    def begun(cls, id: str, seconds: float, at: int) -> Lease:
        return cls(id, seconds, at + round(seconds * 1_000_000))


def to_value(lease: Lease) -> Mapping[str, Any]:
    """What is stored under (`lease`, id of the subscription)."""
    return {"seconds": lease.seconds, "until": lease.until}


def from_change(change: Change) -> Lease:
    """The lease that a change set. A removal sets none: raises ValueError."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    return Lease(change.key, change.value["seconds"], change.value["until"])
