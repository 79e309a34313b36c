"""The registry port: named values that change, each change at a position of the log's own order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from triplewire.model import START

PAGE_ENTRIES: Final = 1_000
"""Entries in one page of a list of resources."""


@dataclass(frozen=True)
class RegistryChange:
    """An entry was set (`value`), or removed (`value` is None), at a position."""

    position: int
    kind: str
    key: str
    value: Mapping[str, Any] | None


class Registry(Protocol):
    """Named entries of several kinds: streams, subscriptions, shapes and others.

    Called from any thread. Every twin passes the same contract suite (`tests/storage/registry/test_contract.py`).
    """

    def put(self, entries: Sequence[tuple[str, str, Mapping[str, Any] | None]]) -> list[int]:
        """Set or remove (value None) each (kind, key), all in one durable transaction; one position for each.

        Values are JSON objects; integers in them have 64 bits. Raises TypeError for others, StorageFull when the disk
        refuses; then none is stored.
        """

    def get(self, kind: str, key: str) -> RegistryChange | None:
        """The newest value of an entry; None if it does not exist or was removed."""

    def list(
        self, kind: str, *, after: int = START, below: str | None = None, limit: int | None = None
    ) -> Sequence[RegistryChange]:
        """The entries of a kind that exist now, by position: those set after a position, those whose keys sort before a
        text by code points, at most `limit`. The cost depends on the result alone."""

    def changes(self, after: int, through: int, most: int | None = None) -> Sequence[RegistryChange]:
        """All changes at positions p with `after < p <= through`, in order, removals included; at most `most`."""


class RedactableRegistry(Registry, Protocol):
    """A registry whose past values can be erased."""

    def redact(self, position: int, value: Mapping[str, Any]) -> None:
        """Replace the value that was set at a position, so that no byte of it is left. This is the only change to the
        past, for erasure. Raises the errors of `put`, and Unavailable if a reader is in the way; then it is to be done
        again."""
