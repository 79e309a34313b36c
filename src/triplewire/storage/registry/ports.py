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
    """One thing was set (`value`) or removed (`value` is None) at a position."""

    position: int
    kind: str
    key: str
    value: Mapping[str, Any] | None


class Registry(Protocol):
    """Streams, subscriptions, shapes and whatever else has a name.

    Called from any thread. Every twin passes the same contract suite (`tests/storage/registry/test_contract.py`).
    """

    def put(self, entries: Sequence[tuple[str, str, Mapping[str, Any] | None]]) -> list[int]:
        """Set or remove (value None) each (kind, key), all in one durable transaction; one position for each.

        Values are JSON objects; integers in them have 64 bits. Raises TypeError for others, StorageFull when the disk
        refuses; then none is stored.
        """

    def get(self, kind: str, key: str) -> RegistryChange | None:
        """The thing as it is now; None if it is not there or was removed."""

    def list(
        self, kind: str, *, after: int = START, below: str | None = None, limit: int | None = None
    ) -> Sequence[RegistryChange]:
        """The things of that kind that are there now, in the order of their positions: those set after a position,
        those whose keys come before a text in the order of code points, so many at most. It costs what it gives."""

    def changes(self, after: int, upto: int, most: int | None = None) -> Sequence[RegistryChange]:
        """Every change at positions p with `after < p <= upto`, in order, removals included; or the first of them."""


class RedactableRegistry(Registry, Protocol):
    """A registry in which what a change said can be made illegible."""

    def blot(self, position: int, value: Mapping[str, Any]) -> None:
        """Put another value into the place of what was set at a position, so that no byte of that is left. The only
        change to the past that there is: for what nobody may know any more. Raises what `put` raises, and Unavailable
        where somebody is in the way; then it is to be done again."""
