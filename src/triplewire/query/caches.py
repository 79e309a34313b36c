"""Caches: the lake in memory, for as long as it is small enough.

Files are taken in one by one, and the copy is used once all of them are there. Predicates are numbered in it: engines
keep the least and the greatest of a run of numbers in full, but of texts only a few letters, in which all IRIs agree.
Subjects and objects are numbered, too, all in one row of numbers: to join by these takes a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from triplewire.lake.ports import Snapshot
from triplewire.query.intakes import Intake, Portion
from triplewire.query.views import READ, TIMES
from triplewire.sparql.statistics import IDENTITY, NUMBER

COPY = "cached_quads"
_TYPES = {"position": "BIGINT", "quad": "INTEGER", "object_number": "DOUBLE", **dict.fromkeys(TIMES, "TIMESTAMP")}
NOTHING = ", ".join(f"CAST(NULL AS {_TYPES.get(name, 'VARCHAR')}) AS {name}" for name in READ)
"""What to select for a relation of quads that has none."""

_COLUMNS = ", ".join(f"CAST(f.{name} AS TIMESTAMP) AS {name}" if name in TIMES else f"f.{name}" for name in READ)
_SUBJECT, _OBJECT = f"subject_{IDENTITY}", f"object_{IDENTITY}"
# The next number is asked of the table itself, so that an interrupt at any point leaves no number that is used twice.
_TERMS = """
INSERT INTO cached_terms SELECT term, row_number() OVER () + (SELECT coalesce(max(id), 0) FROM cached_terms)
FROM (SELECT subject AS term FROM {rows} UNION SELECT object FROM {rows}) AS f
ANTI JOIN cached_terms AS n ON f.term = n.term
"""
_TAKE = f"""
INSERT INTO {COPY} SELECT {_COLUMNS}, n.number, s.id, o.id
FROM {{rows}} AS f JOIN cached_predicates AS n ON f.predicate = n.predicate
JOIN cached_terms AS s ON f.subject = s.term JOIN cached_terms AS o ON f.object = o.term
"""
_SORTED = 1.25
"""How much larger the copy must be before it is sorted again: all sorting together then costs five times the last."""


class Cache:
    """A copy of the lake up to a position. Belongs to one connection."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck
        self._intake = Intake()
        self._numbers: dict[str, int] = {}
        self._rows = 0
        self._sorted = 0
        self.begin()

    def holds(self, snapshot: Snapshot) -> bool:
        """Is this what is in it?"""
        return self._intake.holds(snapshot)

    def missing(self, snapshot: Snapshot) -> Sequence[Portion]:
        """What is yet to be taken in. Where rows are gone, everything begins anew."""
        if not self._intake.follows(snapshot):
            self.begin()
        return self._intake.missing(snapshot)

    def take(self, portion: Portion) -> None:
        self._number(portion)
        self._duck.execute(_TERMS.format(rows=portion.relation))
        ((count,),) = self._duck.execute(_TAKE.format(rows=portion.relation)).fetchall()
        self._rows += count
        self._intake.took(portion)

    def finish(self) -> None:
        """Bring quads of one predicate together, where many have come since that was done last."""
        if self._rows > self._sorted * _SORTED:
            self._duck.execute(f"CREATE OR REPLACE TEMP TABLE {COPY} AS FROM {COPY} ORDER BY {NUMBER}, position, quad")
            self._sorted = self._rows

    @property
    def numbers(self) -> Mapping[str, int]:
        return self._numbers

    def begin(self) -> None:
        """From nothing."""
        self._intake, self._numbers, self._rows, self._sorted = Intake(), {}, 0, 0
        self._duck.execute("CREATE OR REPLACE TEMP TABLE cached_predicates (predicate VARCHAR, number INTEGER)")
        self._duck.execute("CREATE OR REPLACE TEMP TABLE cached_terms (term VARCHAR, id INTEGER)")
        numbers = ", ".join(f"0 AS {name}" for name in (NUMBER, _SUBJECT, _OBJECT))
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE {COPY} AS SELECT {NOTHING}, {numbers} WHERE false")

    def _number(self, portion: Portion) -> None:
        found = self._duck.execute(f"SELECT DISTINCT predicate FROM {portion.relation}").fetchall()
        fresh = sorted(predicate for (predicate,) in found if predicate not in self._numbers)
        for number, predicate in enumerate(fresh, len(self._numbers)):
            # an interrupt must not leave a number that the table does not have
            self._duck.execute("INSERT INTO cached_predicates VALUES (?, ?)", [predicate, number])
            self._numbers[predicate] = number
