"""Passes: some events on their way through the last parts of sieves. What lets the same events through gives the same
table, so that messages are written once for all of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from triplewire.edge.sieves.asks import Answers
from triplewire.edge.sieves.batches import Mask
from triplewire.edge.sieves.filters import Broken, Filter, judged
from triplewire.edge.sieves.sieves import Ask, Tap


class Costly(Exception):
    """A query was given up."""


@dataclass(frozen=True)
class Pass:
    """Events, and what queries say of them; without those queries that were given up."""

    entries: pa.Table
    answers: Answers = field(default_factory=Answers)
    _tables: dict[bytes, pa.Table] = field(default_factory=dict)

    def through(self, tap: Tap, mask: Mask, memory: Filter | None) -> pa.Table:
        """Those of some events that pass the queries of a tap and then its filter. Raises Broken or Costly."""
        mask = self._answered(tap, mask)
        if tap.sieve is None or tap.sieve.filter is None or not mask.any():
            return self._table(mask)
        if memory is None:
            raise Broken("it was not made")
        told = mask.copy()
        told[mask] = judged(memory, self._table(mask))
        return self._table(told)

    def undecided(self, tap: Tap, mask: Mask) -> list[int]:
        """The positions of those of which a query of the tap did not say anything, and no other said yes."""
        left = [self.answers.undecided[ask] for ask in _asks(tap) if ask in self.answers.undecided]
        if not left:
            return []
        found = mask & np.logical_or.reduce(left) & ~self._answered(tap, mask)
        positions: list[int] = self.entries["position"].to_numpy()[found].tolist()
        return positions

    def _answered(self, tap: Tap, mask: Mask) -> Mask:
        asks = _asks(tap)
        if any(ask not in self.answers.passed for ask in asks):
            raise Costly
        return mask & np.logical_or.reduce([self.answers.passed[ask] for ask in asks]) if asks else mask

    def _table(self, mask: Mask) -> pa.Table:
        key = np.packbits(mask).tobytes()
        found = self._tables.get(key)
        if found is None:
            found = self._tables[key] = self.entries if mask.all() else self.entries.filter(pa.array(mask))
        return found


def _asks(tap: Tap) -> tuple[Ask, ...]:
    return () if tap.sieve is None else tap.sieve.asks
