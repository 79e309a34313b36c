"""Repetitions: which predicates have triples that come again, and whether events share an id.

By hashes: two triples of one hash may be one triple, two of different hashes are not. So what is told to be there only
once is.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pyarrow as pa

from triplewire.config import limits
from triplewire.lake.ports import Snapshot
from triplewire.query.intakes import Intake, Portion
from triplewire.query.runs import Runs

# Ids of events lie among the triples, without a predicate, so that one statement takes in all or nothing.
_NEW = """
SELECT predicate, hash(subject, predicate, object) AS h FROM {rows}
UNION ALL SELECT NULL, hash(graph) FROM {rows} WHERE quad = 0
"""


class Repetitions:
    """Of the lake up to a position. Belongs to one connection."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck
        self.begin()

    def begin(self) -> None:
        """From nothing: there are no rows yet, or some are gone."""
        self._intake, self._rows, self._hashes = Intake(), 0, Runs()
        self._repeating = frozenset[str | None]()

    def of(self, snapshot: Snapshot) -> frozenset[str | None] | None:
        """The predicates some of whose triples are there more than once, and None, itself no predicate, if some events
        have one id. Nothing at all while that is not known."""
        return self._repeating if self._rows <= limits.HASHED_QUADS and self._intake.holds(snapshot) else None

    def missing(self, snapshot: Snapshot) -> Sequence[Portion]:
        """What is yet to be looked at. Where rows are gone, everything begins anew."""
        if not self._intake.follows(snapshot):
            self.begin()
        return self._intake.missing(snapshot)

    def take(self, portion: Portion) -> None:
        if self._rows > limits.HASHED_QUADS:
            self._intake.took(portion)
            return
        found = self._duck.sql(_NEW.format(rows=portion.relation)).to_arrow_table()
        self._repeating |= self._twice(found)
        self._rows += found.num_rows
        self._intake.took(portion)
        if self._rows > limits.HASHED_QUADS:
            self._hashes = Runs()

    def _twice(self, found: pa.Table) -> set[str | None]:
        """The predicates of triples that were there before, or come twice. What is found is there from now on."""
        hashes = found["h"].to_numpy()
        order = np.argsort(hashes)
        ordered = hashes[order]
        again = self._hashes.having(ordered)
        again[1:] |= ordered[1:] == ordered[:-1]
        self._hashes.add(ordered)
        return set(found["predicate"].take(pa.array(order[again])).unique().to_pylist())

    def finish(self) -> None:
        """There is nothing to be made of it."""
