"""Sequences in memory: the one order of positions that the in-memory log and registry share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class Positions:
    """Counts positions. `head` moves only after what was stored at the positions can be read."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._head = 0

    @property
    def head(self) -> int:
        return self._head

    @contextmanager
    def taking(self, count: int) -> Iterator[range]:
        """The next positions, for a block that stores something at them. A block that fails takes none."""
        with self._lock:
            yield range(self._head + 1, self._head + count + 1)
            self._head += count
