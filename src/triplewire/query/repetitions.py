"""Repetitions: which predicates have triples that come again, and whether events share an id.

By hashes: two triples of one hash may be one triple, two of different hashes are not. So what is told to be there only
once is. A triple with a greater subject than any of its predicate was not there, whatever its hash; of what came long
ago only these are remembered. Names that are in the order of time, as those that the broker gives, stay known to be
there once however much comes; others until there is more than hashes are remembered of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import duckdb
import numpy as np
import pyarrow as pa

from triplewire.config import limits
from triplewire.lake.ports import Snapshot
from triplewire.query.intakes import Intake, Portion
from triplewire.query.runs import Marks, Runs

Predicate: TypeAlias = str | None
"""None, itself no predicate, stands for ids of events: they lie among the subjects of triples."""

# Hashes of a predicate's triples together with its ends: the rows are read once for both.
_NEW = """
SELECT predicate, list(hash(subject, predicate, object)) AS hashes, min(subject) AS least, max(subject) AS greatest
FROM {rows} GROUP BY predicate
UNION ALL SELECT NULL, list(hash(graph)), min(graph), max(graph) FROM {rows} WHERE quad = 0 HAVING count(*) > 0
"""


class _Stretch:
    """What came in a stretch of time: hashes, and the greatest subject of each predicate."""

    def __init__(self) -> None:
        self.hashes, self.rows = Runs(), 0
        self.greatest: dict[Predicate, str] = {}

    def reaches(self, predicate: Predicate, subject: str) -> bool:
        """Did the predicate have this subject, or a greater one?"""
        return predicate in self.greatest and subject <= self.greatest[predicate]

    def raise_to(self, greatest: Iterable[tuple[Predicate, str]]) -> None:
        for predicate, subject in greatest:
            self.greatest[predicate] = max(subject, self.greatest.get(predicate, subject))


class Repetitions:
    """Of the lake up to a position. Belongs to one connection."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck
        self.begin()

    def begin(self) -> None:
        """From nothing: there are no rows yet, or some are gone."""
        self._intake, self._repeating = Intake(), frozenset[Predicate]()
        self._past, self._before, self._now = _Stretch(), _Stretch(), _Stretch()
        """Of the past there are no hashes any more."""

    def of(self, snapshot: Snapshot) -> frozenset[Predicate] | None:
        """The predicates some of whose triples may be there more than once, and None if some events may have one id.
        Nothing at all while that is not known."""
        return self._repeating if self._intake.holds(snapshot) else None

    def missing(self, snapshot: Snapshot) -> Sequence[Portion]:
        """What is yet to be looked at. Where rows are gone, everything begins anew."""
        if not self._intake.follows(snapshot):
            self.begin()
        return self._intake.missing(snapshot)

    def take(self, portion: Portion) -> None:
        found = self._duck.sql(_NEW.format(rows=portion.relation)).to_arrow_table()
        # What repeats has repeated ever after: nothing of it need be remembered.
        new = [name not in self._repeating for name in found["predicate"].to_pylist()]
        found = found.filter(pa.array(new, pa.bool_()))
        names, least, greatest = (found[each].to_pylist() for each in ("predicate", "least", "greatest"))
        ends = list(zip(names, least, strict=True))
        late = {name for name, first in ends if self._past.reaches(name, first)}
        sought = [any(each.reaches(name, first) for each in (self._before, self._now)) for name, first in ends]
        self._repeating |= late | self._twice(names, found["hashes"].combine_chunks(), np.array(sought, np.bool_))
        self._now.raise_to(zip(names, greatest, strict=True))
        self._intake.took(portion)
        if self._now.rows > limits.HASHED_QUADS // 2:
            self._past.raise_to(self._before.greatest.items())
            self._before, self._now = self._now, _Stretch()

    def _twice(self, names: Sequence[Predicate], found: pa.ListArray[pa.UInt64Scalar], sought: Marks) -> set[Predicate]:
        """The predicates of triples that come twice, or were there before, which only those that are `sought` can have
        been. What is found is there from now on."""
        hashes = found.flatten().to_numpy()
        order = np.argsort(hashes)
        ordered = hashes[order]
        owners = np.repeat(np.arange(len(names)), found.value_lengths().to_numpy())[order]
        again = np.zeros(len(ordered), np.bool_)
        again[1:] = ordered[1:] == ordered[:-1]
        known = sought[owners]
        again[known] |= self._before.hashes.having(ordered[known]) | self._now.hashes.having(ordered[known])
        self._now.hashes.add(ordered)
        self._now.rows += len(ordered)
        return {names[number] for number in np.unique(owners[again])}

    def finish(self) -> None:
        """There is nothing to be made of it."""
