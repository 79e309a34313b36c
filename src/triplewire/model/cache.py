"""The bounded cache: a mapping that drops its least recently used entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """At most `limit` entries; or, where `size` measures a value, entries of that size altogether.

    Getting and putting an entry makes it the most recently used one. Not thread-safe: threads that share a cache take
    a lock around each call.
    """

    def __init__(self, limit: int, size: Callable[[V], int] | None = None) -> None:
        self._limit = limit
        self._measure = size
        self._total = 0
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def values(self) -> Iterable[V]:
        """Return the values, the least recently used first."""
        return self._entries.values()

    def get(self, key: K) -> V | None:
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> list[V]:
        """Add or replace an entry; return the values that were evicted for it. A value that is larger than the limit
        evicts everything, itself too."""
        self.pop(key)
        self._entries[key] = value
        self._total += self._size(value)
        evicted = []
        while self._total > self._limit:
            _, oldest = self._entries.popitem(last=False)
            self._total -= self._size(oldest)
            evicted.append(oldest)
        return evicted

    def pop(self, key: K) -> V | None:
        """Remove an entry and return its value, or None if there is none."""
        value = self._entries.pop(key, None)
        if value is not None:
            self._total -= self._size(value)
        return value

    def pop_oldest(self) -> tuple[K, V]:
        """Remove the least recently used entry. Raises KeyError if the cache is empty."""
        key, value = self._entries.popitem(last=False)
        self._total -= self._size(value)
        return key, value

    def clear(self) -> None:
        self._entries.clear()
        self._total = 0

    def _size(self, value: V) -> int:
        return 1 if self._measure is None else self._measure(value)
