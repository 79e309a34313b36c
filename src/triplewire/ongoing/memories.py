"""Memories: what was told already to those who want everything once."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from triplewire.ongoing.ledgers import START, Ledger

_TOLD = pa.schema([pa.field("digest", pa.binary(16))])


@dataclass
class Memory:
    """Answers of queries with set semantics, as digests of 16 bytes, written down batch by batch."""

    ledger: Ledger
    _known: set[bytes] = field(default_factory=set)
    _batch: int = -1

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
        self.ledger.write((batch, 1), pa.table([pa.array(told, pa.binary(16))], schema=_TOLD))
        return matches.filter(pa.array(keep))

    def _recall(self, batch: int) -> None:
        """All that was told before a batch."""
        if self._batch < 0 or self._batch >= batch:
            self._known = {
                each for table in self.ledger.since(START, (batch, 0)) for each in table["digest"].to_pylist()
            }
        self._batch = batch


def _digest(group: int, terms: list[str | None]) -> bytes:
    return hashlib.blake2b(repr((group, terms)).encode(), digest_size=16).digest()
