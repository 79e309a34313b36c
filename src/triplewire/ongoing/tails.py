"""Tails: what is told of a combination of triples once it is whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model import MATCHES
from triplewire.ongoing.structures import Structure


@dataclass(frozen=True)
class Tail:
    """Of queries that tell the same of the same slots: the slot of each variable that is told."""

    told: tuple[int, ...]

    @classmethod
    def of(cls, structure: Structure, slots: Mapping[str, int]) -> Tail:
        return cls(tuple(slots[name] for name in structure.projection))


@dataclass
class Groups:
    """What is told to each group, by the number that it has in a plan: its own number, and its tail."""

    numbers: list[int] = field(default_factory=list)
    tails: list[int] = field(default_factory=list)
    known: dict[Tail, int] = field(default_factory=dict)

    def add(self, number: int, tail: Tail) -> None:
        self.numbers.append(number)
        self.tails.append(self.known.setdefault(tail, len(self.known)))


@dataclass(frozen=True)
class Speech:
    """The same, as it travels."""

    numbers: np.ndarray
    tails: np.ndarray
    kinds: Sequence[Tail]

    @classmethod
    def of(cls, groups: Groups) -> Speech:
        return cls(np.array(groups.numbers, np.int64), np.array(groups.tails, np.int32), list(groups.known))

    def matches(self, answers: pa.Table) -> pa.Table:
        """Answers as `MATCHES`: one row for each, with the oldest position as its value."""
        if not answers.num_rows:
            return MATCHES.empty_table()
        groups = answers["group"].to_numpy()
        order = np.argsort(self.tails[groups], kind="stable")
        parts = [MATCHES.empty_table()]
        ordered, tails = answers.take(pa.array(order)), self.tails[groups][order]
        for tail in np.unique(tails):
            first, last = np.searchsorted(tails, [tail, tail + 1])
            parts.append(self._told(self.kinds[tail], ordered.slice(first, last - first)))
        return pa.concat_tables(parts)

    def _told(self, tail: Tail, answers: pa.Table) -> pa.Table:
        count = answers.num_rows
        terms = pc.split_pattern(answers["text"].combine_chunks().cast(pa.large_string()), "\t")
        columns = [pa.array(["0"] * count, pa.string())]
        columns += [pc.list_element(terms, slot).cast(pa.string()) for slot in tail.told]
        width = len(columns)
        flat = pa.concat_arrays(columns).take(pa.array(np.arange(width * count).reshape(width, count).T.ravel()))
        offsets = pa.array(np.arange(count + 1, dtype=np.int32) * width)
        return pa.Table.from_arrays(
            [
                answers["newest"],
                pa.nulls(count, pa.int64()),
                pa.array(self.numbers[answers["group"].to_numpy()]),
                answers["oldest"].cast(pa.float64()),
                pa.nulls(count, pa.list_(pa.int32())),
                pa.ListArray.from_arrays(offsets, flat),
                pa.nulls(count, pa.string()),
            ],
            schema=MATCHES,
        )
