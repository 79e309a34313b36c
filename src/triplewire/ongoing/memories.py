"""Memories: what was told already to those who want everything once."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from triplewire.ongoing.ledgers import START, Ledger

SETTLED = 500
"""Batches that are written down one by one, before all of it is at once."""

_TOLD = pa.schema([pa.field("group", pa.int64()), pa.field("digest", pa.binary(16))])

Told = tuple[int, bytes]
"""A group, and the digest of an answer of its query."""


@dataclass
class Memory:
    """Answers of queries with set semantics, as digests of 16 bytes, written down batch by batch."""

    ledger: Ledger
    _known: dict[int, set[bytes]] = field(default_factory=dict)
    """By group."""
    _batch: int = -1
    _written: int = 0
    """Files of the ledger, at most."""

    def fresh(self, batch: int, matches: pa.Table, groups: Mapping[int, int]) -> pa.Table:
        """Matches in order of position, without those of these groups that were told before; others are forgotten. Of a
        group counts what has all its pieces after a position. A batch that is done again forgets what it told the first
        time."""
        which = np.isin(matches["group"].to_numpy(), list(groups)) if groups else np.zeros(0, np.bool_)
        if not which.any():
            return matches
        self._recall(batch, groups)
        keep, asked, told = ~which, matches.filter(pa.array(which)), list[Told]()
        columns = (asked[name].to_pylist() for name in ("group", "value", "terms"))
        for row, group, oldest, terms in zip(which.nonzero()[0].tolist(), *columns, strict=True):
            known, digest = self._known.setdefault(group, set()), _digest(terms)
            if oldest > groups[group] and digest not in known:
                known.add(digest)
                told.append((group, digest))
                keep[row] = True
        self.ledger.write((batch, 1), _table(told))
        return matches.filter(pa.array(keep))

    def crowded(self, most: int) -> list[int]:
        """Groups of which more is remembered."""
        return [group for group, known in self._known.items() if len(known) > most]

    def _recall(self, batch: int, groups: Collection[int]) -> None:
        """All that was told before a batch."""
        if self._batch < 0 or self._batch >= batch:
            past, self._known = self.ledger.since(START, (batch, 0)), {}
            for table in past:
                for group, digest in zip(table["group"].to_pylist(), table["digest"].to_pylist(), strict=True):
                    self._known.setdefault(group, set()).add(digest)
            self._written = len(past.moments)
        self._known = {group: known for group, known in self._known.items() if group in groups}
        if self._written > SETTLED:
            self.ledger.settle(batch - 1, _table((group, each) for group in self._known for each in self._known[group]))
            self.ledger.trim(batch - 1)
            self._written = 0
        self._batch, self._written = batch, self._written + 1


def _table(told: Iterable[Told]) -> pa.Table:
    groups, digests = zip(*told, strict=True) if (told := list(told)) else ((), ())
    return pa.table([pa.array(groups, pa.int64()), pa.array(digests, pa.binary(16))], schema=_TOLD)


def _digest(terms: list[str | None]) -> bytes:
    return hashlib.blake2b(repr(terms).encode(), digest_size=16).digest()
