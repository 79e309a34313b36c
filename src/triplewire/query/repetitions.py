"""Repetitions: which predicates have triples that come again, and whether events share an id.

By hashes: two triples of one hash may be one triple, two of different hashes are not. So what is told to be there only
once is.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from triplewire.config import limits
from triplewire.lake.ports import Snapshot
from triplewire.query.intakes import Intake, Portion

# Ids of events lie among the triples, without a predicate, so that one statement takes in all or nothing.
_NEW = """
CREATE OR REPLACE TEMP TABLE new_hashes AS SELECT predicate, hash(subject, predicate, object) AS h FROM {rows}
UNION ALL SELECT NULL, hash(graph) FROM {rows} WHERE quad = 0
"""
_TWICE = """
SELECT DISTINCT predicate FROM new_hashes SEMI JOIN hashes USING (h)
UNION SELECT predicate FROM new_hashes GROUP BY predicate, h HAVING count(*) > 1
"""


class Repetitions:
    """Of the lake up to a position. Belongs to one connection."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck
        self.begin()

    def begin(self) -> None:
        """From nothing: there are no rows yet, or some are gone."""
        self._duck.execute("CREATE OR REPLACE TEMP TABLE hashes (h UBIGINT)")
        self._intake, self._rows = Intake(), 0
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
        self._duck.execute(_NEW.format(rows=portion.relation))
        twice = {predicate for (predicate,) in self._duck.execute(_TWICE).fetchall()}
        ((count,),) = self._duck.execute("INSERT INTO hashes SELECT h FROM new_hashes").fetchall()
        self._repeating |= twice
        self._rows += count
        self._intake.took(portion)
        if self._rows > limits.HASHED_QUADS:
            self._duck.execute("DELETE FROM hashes")

    def finish(self) -> None:
        """There is nothing to be made of it."""
