"""Sifting: which events of a pass each sieve lets through, found out once for all who listen through it.

```
events ─▶ stream, source, application ─▶ vocabulary ─▶ queries ─▶ filter of the deployment ─▶ told
          Arrow                          Arrow         index      Python, with its memory
```
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from triplewire.config import limits
from triplewire.config.metrics import Metrics
from triplewire.edge.sieves.asks import Answers, Asks
from triplewire.edge.sieves.batches import Batch, Mask
from triplewire.edge.sieves.filters import Broken, Filter, Filters
from triplewire.edge.sieves.parameters import sieve_of
from triplewire.edge.sieves.passes import Costly, Pass
from triplewire.edge.sieves.sieves import Ask, Sieve, Tap
from triplewire.edge.workers import Workers
from triplewire.matching.visibility import redact_entries
from triplewire.model.errors import Unavailable
from triplewire.storage.registry.security import visibility_name

Memories = Mapping[Tap, Filter]
"""The filters of the deployment that taps have, with what they remember."""

_TOO_MUCH = (
    f"the query takes more than {limits.SIEVE_CPU_SECONDS:g} s of CPU time on a pass of events; ask for less, "
    "or make a subscription of it"
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sifted:
    """The events that each tap lets through, and in which words those are cut off whose tap failed. Taps that let the
    same events through have the same table."""

    passed: dict[Tap, pa.Table] = field(default_factory=dict)
    failed: dict[Tap, str] = field(default_factory=dict)
    undecided: dict[Tap, Sequence[int]] = field(default_factory=dict)
    """Positions of events that may pass or not: a query took too long on them."""


class Sieves:
    """All sieves of an edge. Who listens through one holds it; it is forgotten when nobody does."""

    def __init__(
        self,
        metrics: Metrics,
        filters: Filters | None = None,
        asks: Asks | None = None,
        most: int = limits.SIEVES,
        workers: Workers | None = None,
    ) -> None:
        self._metrics = metrics
        self._filters = filters
        self._asks = Asks() if asks is None else asks
        self._most = most
        self._known: WeakValueDictionary[Hashable, Sieve] = WeakValueDictionary()
        """By what they say, so that nothing but who listens through them holds them."""
        # While it loads, what others listen through must not wait in the same thread.
        self._loaders = Workers(2, "edge-sieve-load")
        self._workers = workers or Workers(1, "edge-sieve")
        # However many replay, who listens live waits for one step of them at most.
        self._historians = workers or Workers(1, "edge-sieve-past")
        self._loaded = False

    async def asked(self, query: Iterable[tuple[str, str]]) -> Sieve | None:
        """`sieve_of`, in a thread where there is something to parse."""
        given = [*query]
        parsing = any(name == "ask" for name, _ in given)
        return await self._loaders.run(sieve_of, given) if parsing else sieve_of(given)

    async def admit(self, sieve: Sieve) -> tuple[Sieve, Filter | None]:
        """The sieve to listen through, ready: the same object for all that are equal; and a filter of the deployment
        for who comes through it, which remembers nothing yet. Raises BadRequest for a filter that is not known or does
        not take its parameters, Unavailable where there are too many sieves or one does not get ready."""
        if sieve.key not in self._known and len(self._known) >= self._most:
            raise Unavailable(f"{self._most} different sieves are in use here; try another edge, or later")
        held = self._known.setdefault(sieve.key, sieve)
        memory = None if held.filter is None else await self._loaders.run(self.memory, held)
        if held.asks and not self._loaded:
            await self._load()
        return held, memory

    def __len__(self) -> int:
        """How many are in use."""
        return len(self._known)

    def memory(self, sieve: Sieve) -> Filter | None:
        """A new filter of the deployment for it, which remembers nothing; None where it has none."""
        if sieve.filter is None:
            return None
        if self._filters is None:
            self._filters = Filters.installed()
        return self._filters.make(sieve.filter)

    async def sift(self, entries: pa.Table, taps: Collection[Tap], memories: Memories, *, past: bool = False) -> Sifted:
        """The events of a table, of whatever streams, that each tap lets through. One after the other, in a thread for
        the present and one for the past: a filter that remembers sees them in the order of these calls."""
        workers = self._historians if past else self._workers
        return await workers.run(self.sifted, entries, taps, memories)

    def sifted(self, entries: pa.Table, taps: Collection[Tap], memories: Memories) -> Sifted:
        """The same, in this thread. What is out of sight is not there for sieves either."""
        sifted = Sifted()
        for sight, those in groupby(sorted(taps, key=_by_sight), key=lambda tap: tap.sight):
            self._sift(sifted, redact_entries(entries, sight), [*those], memories)
        return sifted

    def _sift(self, sifted: Sifted, entries: pa.Table, taps: Sequence[Tap], memories: Memories) -> None:
        """For taps of one sight, and what is in it."""
        batch = Batch(entries)
        masks = {tap: batch.passing(tap) for tap in taps}
        whole = Pass(entries, self._answers(entries, masks))
        for tap, mask in masks.items():
            self._settle(sifted, whole, tap, mask, memories.get(tap))

    def close(self) -> None:
        self._loaders.close()
        self._workers.close()
        self._historians.close()
        self._asks.close()

    async def _load(self) -> None:
        try:
            async with asyncio.timeout(limits.SIEVE_READY_SECONDS):
                await self._loaders.run(self._asks.load)
        except TimeoutError:
            raise Unavailable("the index of queries is being made ready; try again in a minute") from None
        self._loaded = True

    def _settle(self, sifted: Sifted, whole: Pass, tap: Tap, mask: Mask, memory: Filter | None) -> None:
        try:
            sifted.passed[tap] = whole.through(tap, mask, memory)
            if left := whole.undecided(tap, mask):
                sifted.undecided[tap] = left
        except Broken as error:
            name = _filter_of(tap)
            logger.error("the filter %s of the stream %s failed", name, tap.stream, exc_info=error)
            self._metrics.sieves_failed.labels("filter").inc()
            sifted.failed[tap] = f"the filter {name} failed: {error}"
        except Costly:
            self._metrics.sieves_failed.labels("query").inc()
            sifted.failed[tap] = _TOO_MUCH

    def _answers(self, entries: pa.Table, masks: Mapping[Tap, Mask]) -> Answers:
        """Which events pass each query, of those that somebody asks for them."""
        asking = {tap: tap.sieve.asks for tap in masks if tap.sieve is not None and tap.sieve.asks}
        if not asking:
            return Answers()
        wanted = np.logical_or.reduce([masks[tap] for tap in asking])
        asks = {ask for each in asking.values() for ask in each}
        found = self._asks.passing(entries.filter(pa.array(wanted)), asks, self._alive())
        self._metrics.sieve_undecided.inc(sum(int(mask.sum()) for mask in found.undecided.values()))
        self._metrics.sieve_queries.inc(len(found.passed))
        return found.spread(wanted)

    def _alive(self) -> set[Ask]:
        held = (reference() for reference in self._known.valuerefs())
        return {ask for each in held if each is not None for ask in each.asks}


def _by_sight(tap: Tap) -> str:
    return "" if tap.sight is None else visibility_name(tap.sight)


def _filter_of(tap: Tap) -> str:
    return "" if tap.sieve is None or tap.sieve.filter is None else tap.sieve.filter.name
