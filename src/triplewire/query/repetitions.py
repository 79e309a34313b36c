"""Repetitions: which predicates have triples that come again, and whether events share an id.

By hashes: two triples of one hash may be one triple, two of different hashes are not. So what is told to be there only
once is. Of what came long ago only the greatest subject of each predicate is remembered: a triple with a greater one
was not there. Names that are in the order of time, as those that the broker gives, stay known to be there once however
much comes; others until there is more than hashes are remembered of.
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
from triplewire.query.runs import Runs

Predicate: TypeAlias = str | None
"""None, itself no predicate, stands for ids of events: they lie among the subjects of triples."""

_NEW = """
SELECT predicate, hash(subject, predicate, object) AS h FROM {rows}
UNION ALL SELECT NULL, hash(graph) FROM {rows} WHERE quad = 0
"""
_ENDS = """
SELECT predicate, min(subject), max(subject) FROM {rows} GROUP BY predicate
UNION ALL SELECT NULL, min(graph), max(graph) FROM {rows} WHERE quad = 0 HAVING count(*) > 0
"""


class _Stretch:
    """What came in a stretch of time: hashes, and the greatest subject of each predicate."""

    def __init__(self) -> None:
        self.hashes, self.rows = Runs(), 0
        self.greatest: dict[Predicate, str] = {}

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
        ends = self._duck.sql(_ENDS.format(rows=portion.relation)).fetchall()
        found = self._duck.sql(_NEW.format(rows=portion.relation)).to_arrow_table()
        past = self._past.greatest
        late = {predicate for predicate, least, _ in ends if predicate in past and least <= past[predicate]}
        self._repeating |= late | self._twice(found)
        self._now.raise_to((predicate, greatest) for predicate, _, greatest in ends)
        self._now.rows += found.num_rows
        self._intake.took(portion)
        if self._now.rows > limits.HASHED_QUADS // 2:
            self._past.raise_to(self._before.greatest.items())
            self._before, self._now = self._now, _Stretch()

    def _twice(self, found: pa.Table) -> set[Predicate]:
        """The predicates of triples that were there before, or come twice. What is found is there from now on."""
        hashes = found["h"].to_numpy()
        order = np.argsort(hashes)
        ordered = hashes[order]
        again = self._before.hashes.having(ordered) | self._now.hashes.having(ordered)
        again[1:] |= ordered[1:] == ordered[:-1]
        self._now.hashes.add(ordered)
        return set(found["predicate"].take(pa.array(order[again])).unique().to_pylist())

    def finish(self) -> None:
        """There is nothing to be made of it."""
