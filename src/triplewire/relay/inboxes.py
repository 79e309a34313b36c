"""Inboxes: what was heard and is not yet published. A bounded number of bytes; who has more to bring waits."""

from __future__ import annotations

import asyncio
from collections import deque

from triplewire.relay.parcels import Parcel


class Inbox:
    """Between one who brings and one who takes."""

    def __init__(self, size: int) -> None:
        """It takes more as long as it holds less than `size` bytes: at worst one parcel above that."""
        self._size = size
        self._held = 0
        self._parcels: deque[Parcel] = deque()
        self._end: BaseException | None = None
        self._changed = asyncio.Condition()

    def __len__(self) -> int:
        return len(self._parcels)

    async def put(self, parcel: Parcel) -> None:
        """When there is room."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._held < self._size)
            self._parcels.append(parcel)
            self._held += len(parcel.body)
            self._changed.notify_all()

    async def close(self, end: BaseException) -> None:
        """Nothing more will come; whoever takes is told by the exception, once everything is taken."""
        async with self._changed:
            self._end = end
            self._changed.notify_all()

    async def take(self, count: int, size: int, upto: str | None = None) -> list[Parcel]:
        """As many as there are, in order: at most `count`, of at most `size` bytes unless it is one alone.

        With `upto` it is those up to that position, however many, and they are complete: it waits for one above.
        Raises what it was closed with.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._end is not None or self._enough(upto))
            if not self._enough(upto):
                assert self._end is not None
                raise self._end
            taken = self._first(count, size) if upto is None else self._up_to(upto)
            self._held -= sum(len(each.body) for each in taken)
            self._changed.notify_all()
            return taken

    def _enough(self, upto: str | None) -> bool:
        return bool(self._parcels) and (upto is None or self._parcels[-1].position >= upto)

    def _up_to(self, upto: str) -> list[Parcel]:
        taken = []
        while self._parcels and self._parcels[0].position <= upto:
            taken.append(self._parcels.popleft())
        return taken

    def _first(self, count: int, size: int) -> list[Parcel]:
        taken = [self._parcels.popleft()]
        room = size - len(taken[0].body)
        while self._parcels and len(taken) < count and len(self._parcels[0].body) <= room:
            room -= len(self._parcels[0].body)
            taken.append(self._parcels.popleft())
        return taken
