"""Wires: the connection to one listener, over HTTP or in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class Wire(Protocol):
    """Carries bytes to one listener."""

    @property
    def write(self) -> Callable[[bytes], object]:
        """Writes without waiting; what the other side does not take yet is kept. Does nothing when it is gone."""

    @property
    def waiting(self) -> Callable[[], int]:
        """Tells how many bytes are kept for the other side."""

    @property
    def gone(self) -> bool:
        """The other side is gone."""

    def lost(self, call: Callable[[], None]) -> None:
        """Have it called when the other side is gone, at once if it is."""

    async def drained(self) -> None:
        """Wait while the other side is behind. Raises ConnectionError when it is gone."""

    def close(self) -> None:
        """Let the other side read the rest for a short while, then end the connection whatever happens."""


class MemoryWire:
    """Keeps what it is given. `reader` tells how much of it counts as read by the other side: all, unless set."""

    def __init__(self, reader: Callable[[int], int] | None = None) -> None:
        self.data = bytearray()
        self.gone = False
        self._reader = reader or (lambda written: written)
        self._call: Callable[[], None] = lambda: None

    def write(self, data: bytes) -> None:
        if not self.gone:
            self.data += data

    def waiting(self) -> int:
        return len(self.data) - self._reader(len(self.data))

    def lost(self, call: Callable[[], None]) -> None:
        self._call = call
        if self.gone:
            call()

    async def drained(self) -> None:
        if self.gone:
            raise ConnectionResetError("closed")
        await asyncio.sleep(0)

    def close(self) -> None:
        if not self.gone:
            self.gone = True
            self._call()
