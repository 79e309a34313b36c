"""Erasures as registry entries: pending requests, and their receipts.

The name of an erased thing is itself to be erased. It stands in one entry, which is redacted at the end of the
erasure; the receipt holds a digest of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from triplewire.model import Erasure, ErasureScope
from triplewire.storage.registry.ports import Registry, RegistryChange

ERASING = "erasing"
"""The kind of an entry, under an erasure's id, with the name of what goes. Its position is the erasure's."""
ERASURE = "erasure"
"""The kind of a receipt, under the same id."""
REDACTED: Mapping[str, Any] = {}
"""What is left of the former at the end."""

STEPS = ("hidden", "outbox", "log", "lake", "state", "history", "memory", "name")
"""What happens, in order: nobody is shown it any more; it goes from the matches that wait, from the log, from the
lake as it is, from what continuous queries keep, from the lake as it was, from the memory of those who answer queries;
and its name goes, too."""


@dataclass(frozen=True)
class ErasureReceipt:
    """How far an erasure is. `steps` has the time at which each was done, in microseconds; `completed` is when the last
    byte went."""

    id: str
    scope: ErasureScope
    digest: str
    requested: int
    by: str | None = None
    position: int = 0
    steps: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    completed: int | None = None

    def done(self, step: str, at: int) -> ErasureReceipt:
        """With one step more."""
        return replace(self, steps={**self.steps, step: at})

    def counted(self, **counts: int) -> ErasureReceipt:
        """With what was counted; what was counted before stays."""
        return replace(self, counts={**counts, **self.counts})


def request_entries(receipt: ErasureReceipt, name: str) -> list[tuple[str, str, Mapping[str, Any] | None]]:
    """What is put when an erasure is asked for: from its position on it holds."""
    return [
        (ERASING, receipt.id, {"scope": receipt.scope.value, "name": name}),
        (ERASURE, receipt.id, receipt_to_value(receipt)),
    ]


def pending_erasures(registry: Registry) -> list[Erasure]:
    """Those that go on, by their positions. It costs some microseconds where there are none."""
    return [erasure_from_change(change) for change in registry.list(ERASING) if change.value]


def erasure_from_change(change: RegistryChange) -> Erasure:
    """The erasure that a change asked for. Raises ValueError where its name is gone."""
    if not change.value:
        raise ValueError(f"{change.kind} {change.key} was blotted out")
    return Erasure(change.key, ErasureScope(change.value["scope"]), change.value["name"], change.position)


def latest_erasure_change(registry: Registry, after: int) -> int:
    """The position of the newest thing that was said of any erasure after a position; that position where none was.
    Whoever remembers events asks this, and forgets them where it is another."""
    found = registry.list(ERASURE, after=after)
    return found[-1].position if found else after


def receipt_to_value(receipt: ErasureReceipt) -> Mapping[str, Any]:
    """What is stored under (`erasure`, id)."""
    value = {
        "scope": receipt.scope.value,
        "digest": receipt.digest,
        "requested": receipt.requested,
        "by": receipt.by,
        "position": receipt.position,
        "steps": dict(receipt.steps),
        "counts": dict(receipt.counts),
        "completed": receipt.completed,
    }
    return {name: each for name, each in value.items() if each is not None}


def receipt_from_change(change: RegistryChange) -> ErasureReceipt:
    """The receipt that a change wrote. At first it does not say the position: it lies right behind what it is of."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    value = {**change.value, "scope": ErasureScope(change.value["scope"])}
    value["position"] = value["position"] or change.position - 1
    return ErasureReceipt(change.key, **value)


def read_receipts(registry: Registry) -> Sequence[ErasureReceipt]:
    """All of them, in the order of their positions."""
    found = [receipt_from_change(change) for change in registry.list(ERASURE)]
    return sorted(found, key=lambda each: each.position)
