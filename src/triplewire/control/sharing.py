"""Sharing: how many subscriptions ask the same, and are evaluated once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from threading import Lock

from triplewire.model import END
from triplewire.storage.registry.ports import Registry, RegistryChange
from triplewire.storage.registry.subscriptions import SUBSCRIPTION

_WINDOW = 10_000
"""Positions whose changes are read at once: some 20 MB."""


class Sharing:
    """Counts subscriptions by what they ask, from the first time that somebody wants to know. Any thread may use it.

    It keeps two numbers for each subscription, some 200 bytes.
    """

    def __init__(self, registry: Registry, head: Callable[[], int] | None = None) -> None:
        """`head` tells how far the registry is; without it all its changes are read at once."""
        self._registry = registry
        self._head = head
        self._turn = Lock()
        self._position = 0
        self._asked: dict[int, int] = {}
        self._counts: dict[int, int] = {}

    def count(self, id: str) -> int:
        """How many ask what this one does, itself included; 0 for one that is not there."""
        with self._turn:
            self._follow()
            asked = self._asked.get(_digest(id))
            return 0 if asked is None else self._counts[asked]

    def _follow(self) -> None:
        if self._head is None:
            self._take(self._registry.changes(self._position, END))
            return
        head = self._head()
        while self._position < head:
            upto = min(head, self._position + _WINDOW)
            self._take(self._registry.changes(self._position, upto))
            self._position = upto

    def _take(self, changes: Iterable[RegistryChange]) -> None:
        for change in changes:
            self._position = max(self._position, change.position)
            if change.kind == SUBSCRIPTION:
                self._drop(_digest(change.key))
                if change.value is not None:
                    asked = _digest(change.value["shape"], *change.value["constants"])
                    self._asked[_digest(change.key)] = asked
                    self._counts[asked] = self._counts.get(asked, 0) + 1

    def _drop(self, id: int) -> None:
        asked = self._asked.pop(id, None)
        if asked is not None:
            self._counts[asked] -= 1
            if not self._counts[asked]:
                del self._counts[asked]


def _digest(*texts: str) -> int:
    """A number that tells texts apart: two of a million are the same once in ten million times."""
    told = blake2b(digest_size=8)
    for text in texts:
        encoded = text.encode(errors="surrogatepass")
        told.update(len(encoded).to_bytes(4, "big") + encoded)
    return int.from_bytes(told.digest(), "big")
