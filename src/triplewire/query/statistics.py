"""Statistics of the lake, kept up as it grows.

What is exact is counted once for each row: the kinds of objects that a predicate has. How values spread is estimated
from sketches, which take in new rows without a look at the old ones. What repeats is another matter: see `repetitions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import duckdb

from triplewire.lake.ports import Snapshot
from triplewire.model.terms import RDF_LANG_STRING, XSD, XSD_STRING
from triplewire.query.intakes import Intake, Portion
from triplewire.query.records import Record, Records
from triplewire.query.sketches import Sketches
from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.columns import SHORT_EXACT
from triplewire.sparql.compile.facets import INTEGERS
from triplewire.sparql.queries import NOTHING
from triplewire.sparql.statistics import Counts, Kind, Statistics

GROWTH = 1.2
"""How much larger the lake must be before estimates are drawn anew: they are then still right within a fifth, and
plans that were made by them stay."""

_FACTS = """
SELECT predicate, object_kind, object_datatype, count(*), count(object_number), count(object_time),
       max(length(object)), bool_or(starts_with(object, '_:')), bool_or(starts_with(subject, '_:')),
       bool_and(object_time IS NULL OR regexp_matches(object, '(Z|[+-][0-9][0-9]:[0-9][0-9])"'))
FROM {rows} GROUP BY ALL
"""
_EXACT = frozenset(XSD + name for name in ("decimal", *INTEGERS))
_FAMILIES = {
    XSD_STRING: Family.STRING,
    RDF_LANG_STRING: Family.TAGGED,
    XSD + "float": Family.FLOAT,
    XSD + "double": Family.DOUBLE,
    XSD + "boolean": Family.BOOLEAN,
    XSD + "dateTime": Family.DATETIME,
    XSD + "date": Family.DATE,
    **dict.fromkeys(_EXACT, Family.EXACT),
}
_CERTAIN = frozenset({Family.STRING, Family.TAGGED})


class _Fact(NamedTuple):
    """Objects of one predicate, kind and datatype in some rows."""

    predicate: str
    kind: str
    datatype: str | None
    rows: int
    numbers: int
    times: int
    longest: int
    blank_object: bool
    blank_subject: bool
    zoned: bool

    @property
    def key(self) -> tuple[str, str, str | None]:
        return self.predicate, self.kind, self.datatype

    def joined(self, other: _Fact) -> _Fact:
        """Of the rows of both."""
        return _Fact(
            *self.key,
            self.rows + other.rows,
            self.numbers + other.numbers,
            self.times + other.times,
            max(self.longest, other.longest),
            self.blank_object or other.blank_object,
            self.blank_subject or other.blank_subject,
            self.zoned and other.zoned,
        )

    def families(self) -> set[Family]:
        """Of those whose text a datatype may not allow, also OTHER."""
        if self.kind == "literal":
            family = _FAMILIES.get(self.datatype or "", Family.OTHER)
            valid = family in _CERTAIN or max(self.numbers, self.times) == self.rows
            return {family} if valid else {family, Family.OTHER}
        if self.kind == "triple":
            return {Family.OTHER}
        return {Family.IRI, Family.BLANK} if self.blank_object else {Family.IRI}

    def short(self) -> bool:
        return self.datatype not in _EXACT or self.longest <= SHORT_EXACT


class Counting:
    """What is known of the lake up to a position. Belongs to one connection."""

    def __init__(self, duck: duckdb.DuckDBPyConnection, records: Records | None = None) -> None:
        self._duck = duck
        self._records = records
        self._intake = Intake()
        self._sketches = Sketches(duck)
        self._facts: dict[tuple[str, str, str | None], _Fact]
        self.begin()

    def begin(self) -> None:
        """From nothing: there are no rows yet, or some are gone."""
        self._intake, self._facts = Intake(), {}
        self._sketches.clear()
        self._estimates: Mapping[str | None, Counts] = {}
        self._estimated, self._summed, self._found = -1, False, Statistics()

    def of(self, snapshot: Snapshot) -> Statistics:
        """Of this one, if it is what was counted and summed up; else nothing is known. What repeats is not told."""
        return self._found if self._summed and self._intake.holds(snapshot) else NOTHING

    def missing(self, snapshot: Snapshot) -> Sequence[Portion]:
        """What is yet to be counted. Where rows are gone, everything begins anew, but for what another has counted."""
        if not self._intake.follows(snapshot):
            self.begin()
        if self._records is not None and self._intake.is_new:
            self._restore(self._records.read(), snapshot)
        return self._intake.missing(snapshot)

    def _restore(self, record: Record | None, snapshot: Snapshot) -> None:
        if self._records is not None and record is not None and record.removals < snapshot.removals:
            self._records.forget()
        if record is None or record.removals != snapshot.removals or record.upto > snapshot.upto:
            return
        try:
            facts = [_Fact(*each) for each in record.facts]
            self._sketches.load(record.sketches)
        except (TypeError, ValueError, IndexError, AttributeError):
            self.begin()
            return
        self._facts = {each.key: each for each in facts}
        self._intake.restore(record.upto, record.removals)

    def _record(self, rows: int) -> None:
        """Write down what was counted, for other processes, where it is much and whole."""
        if self._records is not None and self._intake.is_whole and self._records.wants(rows):
            facts = [list(each) for each in self._facts.values()]
            record = Record(self._intake.upto, self._intake.removals, rows, facts, self._sketches.dump())
            self._records.write(record)

    def take(self, portion: Portion) -> None:
        """Count one portion."""
        rows = self._duck.execute(_FACTS.format(rows=portion.relation)).fetchall()
        self._sketches.take(portion.relation)
        for found in map(_Fact._make, rows):
            known = self._facts.get(found.key)
            self._facts[found.key] = found if known is None else known.joined(found)
        self._summed = False
        self._intake.took(portion)

    def finish(self) -> None:
        """Sum up what was counted. As long as it says the same it is the same value, because plans are kept by it."""
        if self._summed:
            return
        rows = sum(each.rows for each in self._facts.values())
        drawn = not self._estimated <= rows <= self._estimated * GROWTH
        if drawn:
            self._estimates, self._estimated = self._sketches.estimates(self._rows()), rows
        made = self._statistics()
        if drawn or (made.kinds, made.blank) != (self._found.kinds, self._found.blank):
            self._found = made
        self._summed = True
        self._record(rows)

    def _rows(self) -> dict[str, int]:
        counted = Counter[str]()
        for each in self._facts.values():
            counted[each.predicate] += each.rows
        return counted

    def _statistics(self) -> Statistics:
        counts = {name: found for name, found in self._estimates.items() if name is not None}
        facts = self._facts.values()
        return Statistics(
            predicates=counts,
            total=self._estimates.get(None, Counts(0, 0, 0, 0)),
            kinds={name: _kind(found) for name, found in _by_predicate(facts).items()},
            complete=True,
            blank=any(each.blank_subject for each in facts),
        )


def _kind(facts: Sequence[_Fact]) -> Kind:
    families = frozenset(family for each in facts for family in each.families())
    return Kind(families, short=all(each.short() for each in facts), zoned=all(each.zoned for each in facts))


def _by_predicate(facts: Iterable[_Fact]) -> dict[str, list[_Fact]]:
    found: dict[str, list[_Fact]] = {}
    for each in facts:
        found.setdefault(each.predicate, []).append(each)
    return found
