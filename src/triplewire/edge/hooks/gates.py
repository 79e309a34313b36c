"""Gates: how many calls are under way at a time, so that those who answer never wait for those who do not."""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from triplewire.config import limits


@dataclass
class Gate:
    """Of one host and port. Once it did not answer, it is ill until it does: one call at a time finds out."""

    many: Semaphore = field(default_factory=lambda: Semaphore(limits.HOOK_CALLS_TARGET))
    one: Semaphore = field(default_factory=lambda: Semaphore(1))
    ill: bool = False
    users: int = 0


class Gates:
    """All of them, and the room that those who are well have together, and that those who are ill have."""

    def __init__(self, well: int = limits.HOOK_CALLS, ill: int = limits.HOOK_CALLS_ILL) -> None:
        self._well = Semaphore(well)
        self._ill = Semaphore(ill)
        self._gates: dict[str, Gate] = {}

    def __len__(self) -> int:
        """How many are known: those that are waited for, and those that are ill."""
        return len(self._gates)

    @asynccontextmanager
    async def through(self, place: str) -> AsyncIterator[Gate]:
        """A call goes on inside. Who is inside says of the gate whether it is ill."""
        gate = self._gates.setdefault(place, Gate())
        gate.users += 1
        try:
            while True:
                ill = gate.ill
                async with gate.one if ill else gate.many, self._ill if ill else self._well:
                    if gate.ill == ill:
                        yield gate
                        return
        finally:
            gate.users -= 1
            if not gate.users and not gate.ill:
                self._gates.pop(place, None)
