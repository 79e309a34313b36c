"""Erasures as registry entries: what is being deleted, and the receipts of it.

The name of what is erased is itself what somebody wants to be gone. It stands in one entry alone, which is there as
long as the erasure goes on and is blotted out at its end; the receipt has a digest of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from triplewire.model import Erasure, Scope
from triplewire.registry.ports import Change, Registry

ERASING = "erasing"
"""The kind of an entry, under an erasure's id, with the name of what goes. Its position is the erasure's."""
ERASURE = "erasure"
"""The kind of a receipt, under the same id."""
BLOT: Mapping[str, Any] = {}
"""What is left of the former at the end."""

STEPS = ("hidden", "outbox", "log", "lake", "state", "history", "memory", "name")
"""What happens, in order: nobody is shown it any more; it goes from the matches that wait, from the log, from the
lake as it is, from what continuous queries keep, from the lake as it was, from the memory of those who answer queries;
and its name goes, too."""


@dataclass(frozen=True)
class Receipt:
    """How far an erasure is. `steps` has the time at which each was done, in microseconds; `completed` is when the last
    byte went."""

    id: str
    scope: Scope
    digest: str
    requested: int
    by: str | None = None
    position: int = 0
    steps: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    completed: int | None = None

    def done(self, step: str, at: int) -> Receipt:
        """With one step more."""
        return replace(self, steps={**self.steps, step: at})

    def counted(self, **counts: int) -> Receipt:
        """With what was counted; what was counted before stays."""
        return replace(self, counts={**counts, **self.counts})


def asked(receipt: Receipt, name: str) -> list[tuple[str, str, Mapping[str, Any] | None]]:
    """What is put when an erasure is asked for: from its position on it holds."""
    return [
        (ERASING, receipt.id, {"scope": receipt.scope.value, "name": name}),
        (ERASURE, receipt.id, to_value(receipt)),
    ]


def pending(registry: Registry) -> list[Erasure]:
    """Those that go on, by their positions. It costs some microseconds where there are none."""
    return [erasing(change) for change in registry.list(ERASING) if change.value]


def erasing(change: Change) -> Erasure:
    """The erasure that a change asked for. Raises ValueError where its name is gone."""
    if not change.value:
        raise ValueError(f"{change.kind} {change.key} was blotted out")
    return Erasure(change.key, Scope(change.value["scope"]), change.value["name"], change.position)


def latest(registry: Registry, after: int) -> int:
    """The position of the newest thing that was said of any erasure after a position; that position where none was.
    Whoever remembers events asks this, and forgets them where it is another."""
    found = registry.list(ERASURE, after=after)
    return found[-1].position if found else after


def to_value(receipt: Receipt) -> Mapping[str, Any]:
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


def from_change(change: Change) -> Receipt:
    """The receipt that a change wrote. At first it does not say the position: it lies right behind what it is of."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    value = {**change.value, "scope": Scope(change.value["scope"])}
    value["position"] = value["position"] or change.position - 1
    return Receipt(change.key, **value)


def receipts(registry: Registry) -> Sequence[Receipt]:
    """All of them, in the order of their positions."""
    found = [from_change(change) for change in registry.list(ERASURE)]
    return sorted(found, key=lambda each: each.position)
