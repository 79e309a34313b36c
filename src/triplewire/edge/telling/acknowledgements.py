"""Acknowledgements: how much a client may be sent that it has not said it is done with."""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict

from triplewire.config import limits


class Window:
    """Messages that were sent and not acknowledged, in order. When they are too many, or too large together, nothing
    more is sent until some are acknowledged. One message always goes, however large."""

    def __init__(self, begin: str, messages: int = limits.ACK_MESSAGES, size: int = limits.ACK_BYTES) -> None:
        self.acknowledged = begin
        """The id of the last message that was acknowledged: where the client resumes."""
        self._messages = messages
        self._size = size
        self._waiting: OrderedDict[str, int] = OrderedDict()
        self._bytes = 0
        self._space = asyncio.Event()
        self._space.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def full(self) -> bool:
        return not self._space.is_set()

    def sent(self, id: str, size: int) -> None:
        """A message goes out. Only while it is not full."""
        self._waiting[id] = size
        self._bytes += size
        self._settle()

    def acknowledge(self, id: str) -> bool:
        """The client is done with a message and all before it; whether it was sent and not acknowledged before."""
        if id not in self._waiting:
            return False
        first = ""
        while first != id:
            first, size = self._waiting.popitem(last=False)
            self._bytes -= size
        self.acknowledged = id
        self._settle()
        return True

    async def space(self, seconds: float) -> None:
        """Wait until something may be sent. Raises TimeoutError when that takes too long."""
        async with asyncio.timeout(seconds):
            await self._space.wait()

    def release(self) -> None:
        """Nobody waits for space any more."""
        self._messages, self._size = sys.maxsize, sys.maxsize
        self._settle()

    def _settle(self) -> None:
        if len(self._waiting) >= self._messages or self._bytes >= self._size:
            self._space.clear()
        else:
            self._space.set()
