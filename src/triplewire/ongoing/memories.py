"""Memories: what was told already to those who want everything once."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from triplewire.ongoing.ledgers import START, Ledger

SETTLED = 500
"""Batches that are written down one by one, before all of it is at once."""

_TOLD = pa.schema([pa.field("digest", pa.binary(16))])


@dataclass
class Memory:
    """Answers of queries with set semantics, as digests of 16 bytes, written down batch by batch."""

    ledger: Ledger
    _known: set[bytes] = field(default_factory=set)
    _batch: int = -1
    _written: int = 0
    """Files of the ledger, at most."""

    def fresh(self, batch: int, matches: pa.Table, groups: Collection[int]) -> pa.Table:
        """Matches in order of position, without those of these groups that were told before. A batch that is done again
        forgets what it told the first time."""
        which = np.isin(matches["group"].to_numpy(), list(groups)) if groups else np.zeros(0, np.bool_)
        if not which.any():
            return matches
        self._recall(batch)
        keep, told = ~which, list[bytes]()
        for row in which.nonzero()[0].tolist():
            digest = _digest(matches["group"][row].as_py(), matches["terms"][row].as_py())
            if digest not in self._known:
                self._known.add(digest)
                told.append(digest)
                keep[row] = True
        self.ledger.write((batch, 1), _table(told))
        return matches.filter(pa.array(keep))

    def _recall(self, batch: int) -> None:
        """All that was told before a batch."""
        if self._batch < 0 or self._batch >= batch:
            past = self.ledger.since(START, (batch, 0))
            self._known = {each for table in past for each in table["digest"].to_pylist()}
            self._written = len(past.moments)
        if self._written > SETTLED:
            self.ledger.settle(batch - 1, _table(self._known))
            self.ledger.trim(batch - 1)
            self._written = 0
        self._batch, self._written = batch, self._written + 1


def _table(digests: Collection[bytes]) -> pa.Table:
    return pa.table([pa.array(list(digests), pa.binary(16))], schema=_TOLD)


def _digest(group: int, terms: list[str | None]) -> bytes:
    return hashlib.blake2b(repr((group, terms)).encode(), digest_size=16).digest()
