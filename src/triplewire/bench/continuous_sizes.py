"""Sizes of `bench continuous`: memory of the pipeline, and rows of state, while a run goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from triplewire.bench.broker import Broker

_EVERY_SECONDS = 1.0


@dataclass
class Sizes:
    """Samples: bytes of memory, and rows that continuous queries had then."""

    broker: Broker
    samples: list[tuple[int, int]] = field(default_factory=list)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Takes samples meanwhile, and one at the end."""
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        self.samples.append(await asyncio.to_thread(self._sample))

    def told(self) -> dict[str, Any]:
        """The first quarter is left out: it is there to fill what is kept."""
        quarter = max(1, len(self.samples) // 4)
        second, last = self.samples[quarter : 2 * quarter] or self.samples, self.samples[-quarter:]
        return {
            "second_quarter_mb": round(_memory(second) / 1e6),
            "last_quarter_mb": round(_memory(last) / 1e6),
            "times": round(_memory(last) / _memory(second), 3),
            "most_rows": max(rows for _, rows in self.samples),
        }

    async def _watch(self) -> None:
        while True:
            self.samples.append(await asyncio.to_thread(self._sample))
            await asyncio.sleep(_EVERY_SECONDS)

    def _sample(self) -> tuple[int, int]:
        ongoing = self.broker.up.heartbeat().detail.get("ongoing", {})
        return self.broker.pipeline().memory, ongoing.get("state_rows", 0)


def _memory(samples: Sequence[tuple[int, int]]) -> float:
    return mean(memory for memory, _ in samples)
