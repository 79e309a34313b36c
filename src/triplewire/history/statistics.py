"""Statistics of the lake for the optimizer, kept up incrementally: counts by predicate, cardinalities, duplicates.

Kinds of objects are counted exactly, once for each row. Cardinalities are estimated by HyperLogLog.

Duplicates are found by hashes: equal hashes may be one triple, different hashes are not, so "no duplicates" is exact.
A triple with a greater subject than any of its predicate is new whatever its hash; of old rows only the greatest
subjects are remembered. Ids in time order therefore stay known to be unique however many come; others until the limit
of hashes. Hashes are kept in sorted runs: a lookup is a binary search in each of about a dozen arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa

from triplewire.history.dataset_statistics import HyperLogLog, StatisticsFile, StatisticsRecord
from triplewire.history.snapshots import SnapshotPortion, SnapshotProgress
from triplewire.model.terms import RDF_LANG_STRING, XSD, XSD_STRING
from triplewire.sparql.algebra import Family
from triplewire.sparql.constants import INTEGERS, SHORT_EXACT
from triplewire.sparql.queries import NO_STATISTICS
from triplewire.sparql.statistics import PredicateKind, Statistics, TripleCounts
from triplewire.storage.lake.ports import Snapshot

HASHED_QUADS: Final = 20_000_000
"""Quads and events of which a process of queries remembers hashes, the newest, to know what is there only once: at
worst 160 MB. Of older ones it knows the greatest name of each predicate: what has a greater one was not there."""


# What is exact is counted once for each row: the kinds of objects that a predicate has. How values spread is estimated
# from sketches, which take in new rows without a look at the old ones. What repeats is another matter: see
# `repetitions`.

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


class LakeStatistics:
    """What is known of the lake up to a position. Belongs to one connection."""

    def __init__(self, duck: duckdb.DuckDBPyConnection, records: StatisticsFile | None = None) -> None:
        self._duck = duck
        self._records = records
        self._intake = SnapshotProgress()
        self._sketches = HyperLogLog(duck)
        self._facts: dict[tuple[str, str, str | None], _Fact]
        self.begin()

    def begin(self) -> None:
        """From nothing: there are no rows yet, or some are gone."""
        self._intake, self._facts = SnapshotProgress(), {}
        self._sketches.clear()
        self._estimates: Mapping[str | None, TripleCounts] = {}
        self._estimated, self._summed, self._found = -1, False, Statistics()

    def of(self, snapshot: Snapshot) -> Statistics:
        """Of this one, if it is what was counted and summed up; else nothing is known. What repeats is not told."""
        return self._found if self._summed and self._intake.holds(snapshot) else NO_STATISTICS

    def missing(self, snapshot: Snapshot) -> Sequence[SnapshotPortion]:
        """What is yet to be counted. Where rows are gone, everything begins anew, but for what another has counted."""
        if not self._intake.follows(snapshot):
            self.begin()
        if self._records is not None and self._intake.is_new:
            self._restore(self._records.read(), snapshot)
        return self._intake.missing(snapshot)

    def _restore(self, record: StatisticsRecord | None, snapshot: Snapshot) -> None:
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
            record = StatisticsRecord(self._intake.upto, self._intake.removals, rows, facts, self._sketches.dump())
            self._records.write(record)

    def take(self, portion: SnapshotPortion) -> None:
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
            total=self._estimates.get(None, TripleCounts(0, 0, 0, 0)),
            kinds={name: _kind(found) for name, found in _by_predicate(facts).items()},
            complete=True,
            blank=any(each.blank_subject for each in facts),
        )


def _kind(facts: Sequence[_Fact]) -> PredicateKind:
    families = frozenset(family for each in facts for family in each.families())
    return PredicateKind(families, short=all(each.short() for each in facts), zoned=all(each.zoned for each in facts))


def _by_predicate(facts: Iterable[_Fact]) -> dict[str, list[_Fact]]:
    found: dict[str, list[_Fact]] = {}
    for each in facts:
        found.setdefault(each.predicate, []).append(each)
    return found


# Runs: numbers that are remembered in sorted arrays, to which more come all the time.
#
# To look for some thousand among twenty million takes a search in each of a dozen arrays. A table without an index is
# read whole for it, each time.

Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]
Marks: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

LONGEST_RUN = 4_194_304
"""Numbers of a run from which on it stays as it is: while two become one there is room for both, 64 MB at worst."""


class SortedRuns:
    """Each is more than twice as long as the one after it, or so long that it stays: a number is moved as often as its
    run has doubled."""

    def __init__(self) -> None:
        self._runs: list[Numbers] = []

    def having(self, numbers: Numbers) -> Marks:
        """Which of the numbers are there. They are found the sooner if they are in order."""
        found = np.zeros(len(numbers), np.bool_)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, numbers), len(run) - 1)
            found |= run[places] == numbers
        return found

    def add(self, numbers: Numbers) -> None:
        """Numbers in order."""
        if len(numbers):
            self._runs.append(numbers)
        while len(self._runs) > 1 and len(self._runs[-2]) < min(2 * len(self._runs[-1]), LONGEST_RUN):
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            # What is sorted in stretches is sorted in one pass over it.
            merged.sort(kind="stable")
            self._runs.append(merged)


# Repetitions: which predicates have triples that come again, and whether events share an id.
#
# By hashes: two triples of one hash may be one triple, two of different hashes are not. So what is told to be there
# only once is. A triple with a greater subject than any of its predicate was not there, whatever its hash; of what
# came long ago only these are remembered. Names that are in the order of time, as those that the broker gives, stay
# known to be there once however much comes; others until there is more than hashes are remembered of.

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
        self.hashes, self.rows = SortedRuns(), 0
        self.greatest: dict[Predicate, str] = {}

    def reaches(self, predicate: Predicate, subject: str) -> bool:
        """Did the predicate have this subject, or a greater one?"""
        return predicate in self.greatest and subject <= self.greatest[predicate]

    def raise_to(self, greatest: Iterable[tuple[Predicate, str]]) -> None:
        for predicate, subject in greatest:
            self.greatest[predicate] = max(subject, self.greatest.get(predicate, subject))


class DuplicateIndex:
    """Of the lake up to a position. Belongs to one connection."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck
        self.begin()

    def begin(self) -> None:
        """From nothing: there are no rows yet, or some are gone."""
        self._intake, self._repeating = SnapshotProgress(), frozenset[Predicate]()
        self._past, self._before, self._now = _Stretch(), _Stretch(), _Stretch()
        """Of the past there are no hashes any more."""

    def of(self, snapshot: Snapshot) -> frozenset[Predicate] | None:
        """The predicates some of whose triples may be there more than once, and None if some events may have one id.
        Nothing at all while that is not known."""
        return self._repeating if self._intake.holds(snapshot) else None

    def missing(self, snapshot: Snapshot) -> Sequence[SnapshotPortion]:
        """What is yet to be looked at. Where rows are gone, everything begins anew."""
        if not self._intake.follows(snapshot):
            self.begin()
        return self._intake.missing(snapshot)

    def take(self, portion: SnapshotPortion) -> None:
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
        if self._now.rows > HASHED_QUADS // 2:
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
