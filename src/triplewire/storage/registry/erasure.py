"""Erasures as registry entries: pending requests, and their receipts.

The name of an erased thing is itself to be erased. It stands in one entry, which is redacted at the end of the
erasure; the receipt holds a digest of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from triplewire.model import Erasure, ErasureScope
from triplewire.storage.registry.codec import EntryCodec
from triplewire.storage.registry.ports import Registry, RegistryChange

ERASING = "erasing"
"""The kind of an entry, under an erasure's id, with the name of what goes. Its position is the erasure's."""
ERASURE = "erasure"
"""The kind of a receipt, under the same id."""
REDACTED: Mapping[str, Any] = {}
"""The value of an `erasing` entry at the end."""

STEPS = ("hidden", "outbox", "log", "lake", "state", "history", "memory", "name")
"""The steps of an erasure, in order: `hidden` from all readers; deleted from the outbox, the log, the current lake, the
state of continuous queries, the lake's history, the memory of query processes; and the name itself."""


@dataclass(frozen=True)
class ErasureReceipt:
    """The progress of an erasure. `steps` has the time at which each was done, in microseconds; `completed` is the time
    of the last."""

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
        return replace(self, steps={**self.steps, step: at})

    def counted(self, **counts: int) -> ErasureReceipt:
        """Add counts; those that are there stay."""
        return replace(self, counts={**counts, **self.counts})


def request_entries(receipt: ErasureReceipt, name: str) -> list[tuple[str, str, Mapping[str, Any] | None]]:
    """The entries of a request: the erasure holds from its position on."""
    return [
        (ERASING, receipt.id, {"scope": receipt.scope.value, "name": name}),
        (ERASURE, receipt.id, receipt_to_value(receipt)),
    ]


def pending_erasures(registry: Registry) -> list[Erasure]:
    """Pending erasures, by position. Costs microseconds if there are none."""
    return [erasure_from_change(change) for change in registry.list(ERASING) if change.value]


def erasure_from_change(change: RegistryChange) -> Erasure:
    """The erasure that a change asked for. Raises ValueError where its name is gone."""
    if not change.value:
        raise ValueError(f"{change.kind} {change.key} was blotted out")
    return Erasure(change.key, ErasureScope(change.value["scope"]), change.value["name"], change.position)


def latest_erasure_change(registry: Registry, after: int) -> int:
    """The position of the newest change to any erasure after a position; that position if there is none. Caches of
    events compare it, and drop their content when it moves."""
    found = registry.list(ERASURE, after=after)
    return found[-1].position if found else after


_RECEIPTS = EntryCodec(ErasureReceipt, key="id")
receipt_to_value = _RECEIPTS.to_value


def receipt_from_change(change: RegistryChange) -> ErasureReceipt:
    """The receipt that a change has written. The first one has no position yet: that of its request is right before."""
    receipt = _RECEIPTS.from_change(change)
    return replace(receipt, position=receipt.position or change.position - 1)
