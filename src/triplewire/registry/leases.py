"""Leases as registry entries: until when a subscription stays that nobody listens to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triplewire.registry.ports import Change

LEASE = "lease"
EXPIRY = "expiry"
"""The kind of an entry for each lease, under a key that sorts by time: who looks after leases finds those that may have
run out, and reads no others. A lease that was renewed is met there when its old time is over, and put in again."""


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


def expiry(until: int, id: str = "") -> str:
    """The key of an entry that is looked at from a time on; without an id one that comes after all before that time."""
    return f"{until:020}.{id}"


def expiring(change: Change) -> str:
    """The id of the subscription that an entry of this kind is of."""
    return change.key.partition(".")[2]


def from_change(change: Change) -> Lease:
    """The lease that a change set. A removal sets none: raises ValueError."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    return Lease(change.key, change.value["seconds"], change.value["until"])
