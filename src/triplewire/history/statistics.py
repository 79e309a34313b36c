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
from triplewire.history.snapshots import PORTION_QUADS, IncrementalView, SnapshotPortion
from triplewire.model.terms import RDF_LANG_STRING, XSD, XSD_STRING
from triplewire.sparql.algebra import Family
from triplewire.sparql.constants import INTEGERS, SHORT_EXACT
from triplewire.sparql.queries import NO_STATISTICS
from triplewire.sparql.statistics import PredicateKind, Statistics, TripleCounts
from triplewire.storage.lake.ports import Snapshot

HASHED_QUADS: Final = 20_000_000
"""The newest quads and events whose hashes a query process keeps to detect duplicates: at worst 160 MB. For older ones
it keeps the greatest subject of each predicate: a greater one is new."""

GROWTH = 1.2
"""Growth of the lake before estimates are renewed: until then they are right within a fifth, and cached plans stay."""

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

    def merge(self, other: _Fact) -> _Fact:
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
        """Return the families of the objects; OTHER too if some lexical forms may be ill-typed."""
        if self.kind == "literal":
            family = _FAMILIES.get(self.datatype or "", Family.OTHER)
            valid = family in _CERTAIN or max(self.numbers, self.times) == self.rows
            return {family} if valid else {family, Family.OTHER}
        if self.kind == "triple":
            return {Family.OTHER}
        return {Family.IRI, Family.BLANK} if self.blank_object else {Family.IRI}

    def short(self) -> bool:
        return self.datatype not in _EXACT or self.longest <= SHORT_EXACT


class LakeStatistics(IncrementalView):
    """Statistics of the lake, counted over one connection."""

    def __init__(
        self, duck: duckdb.DuckDBPyConnection, records: StatisticsFile | None = None, portion_quads: int = PORTION_QUADS
    ) -> None:
        self._duck = duck
        self._records = records
        self._sketches = HyperLogLog(duck)
        super().__init__(portion_quads)

    def reset(self) -> None:
        super().reset()
        self._facts: dict[tuple[str, str, str | None], _Fact] = {}
        self._sketches.clear()
        self._estimates: Mapping[str | None, TripleCounts] = {}
        self._estimated, self._summed, self._current = -1, False, Statistics()

    def get(self, snapshot: Snapshot) -> Statistics:
        """Return the statistics of a snapshot, if it is complete; duplicates are not part of them."""
        return self._current if self._summed and self.holds(snapshot) else NO_STATISTICS

    def missing(self, snapshot: Snapshot) -> Sequence[SnapshotPortion]:
        """Return the portions still to be counted. After a reset the record of another process is used."""
        if not self._progress.follows(snapshot):
            self.reset()
        if self._records is not None and self._progress.is_new:
            self._restore(self._records.read(), snapshot)
        return self._progress.missing(snapshot)

    def _restore(self, record: StatisticsRecord | None, snapshot: Snapshot) -> None:
        if self._records is not None and record is not None and record.removals < snapshot.removals:
            self._records.forget()
        if record is None or record.removals != snapshot.removals or record.position > snapshot.position:
            return
        try:
            facts = [_Fact(*each) for each in record.facts]
            self._sketches.load(record.sketches)
        except (TypeError, ValueError, IndexError, AttributeError):
            self.reset()
            return
        self._facts = {each.key: each for each in facts}
        self._progress.restore(record.position, record.removals)

    def _record(self, rows: int) -> None:
        """Save complete statistics for other processes, if there is much to count."""
        if self._records is not None and self._progress.is_whole and self._records.is_worthwhile(rows):
            facts = [list(each) for each in self._facts.values()]
            progress, sketches = self._progress, self._sketches.dump()
            self._records.write(StatisticsRecord(progress.position, progress.removals, rows, facts, sketches))

    def add(self, portion: SnapshotPortion) -> None:
        rows = self._duck.execute(_FACTS.format(rows=portion.relation)).fetchall()
        self._sketches.add(portion.relation)
        for fact in map(_Fact._make, rows):
            known = self._facts.get(fact.key)
            self._facts[fact.key] = fact if known is None else known.merge(fact)
        self._summed = False
        self._progress.mark_done(portion)

    def finish(self) -> None:
        """Sum up the counts. The result stays the same object while it is equal, as it is the key of cached plans."""
        if self._summed:
            return
        rows = sum(each.rows for each in self._facts.values())
        renewed = not self._estimated <= rows <= self._estimated * GROWTH
        if renewed:
            self._estimates, self._estimated = self._sketches.estimate(self._rows()), rows
        summed = self._statistics()
        if renewed or (summed.kinds, summed.blank) != (self._current.kinds, self._current.blank):
            self._current = summed
        self._summed = True
        self._record(rows)

    def _rows(self) -> dict[str, int]:
        counted = Counter[str]()
        for each in self._facts.values():
            counted[each.predicate] += each.rows
        return counted

    def _statistics(self) -> Statistics:
        counts = {name: each for name, each in self._estimates.items() if name is not None}
        facts = self._facts.values()
        return Statistics(
            predicates=counts,
            total=self._estimates.get(None, TripleCounts(0, 0, 0, 0)),
            kinds={name: _kind(each) for name, each in _by_predicate(facts).items()},
            complete=True,
            blank=any(each.blank_subject for each in facts),
        )


def _kind(facts: Sequence[_Fact]) -> PredicateKind:
    families = frozenset(family for each in facts for family in each.families())
    return PredicateKind(families, short=all(each.short() for each in facts), zoned=all(each.zoned for each in facts))


def _by_predicate(facts: Iterable[_Fact]) -> dict[str, list[_Fact]]:
    groups: dict[str, list[_Fact]] = {}
    for each in facts:
        groups.setdefault(each.predicate, []).append(each)
    return groups


Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]
Mask: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

LONGEST_RUN = 4_194_304
"""Numbers of a run that is not merged any more: a merge needs memory for both runs, 64 MB at worst."""


class SortedRuns:
    """A set of numbers in sorted arrays.

    Each array is more than twice as long as the next one, or has `longest` numbers: a number is moved as often as its
    run has doubled. A lookup is a binary search in each array.
    """

    def __init__(self, longest: int = LONGEST_RUN) -> None:
        self._runs: list[Numbers] = []
        self._longest = longest

    def contains(self, numbers: Numbers) -> Mask:
        """Return which of the numbers are in the set; faster if they are in order."""
        contained = np.zeros(len(numbers), np.bool_)
        for run in self._runs:
            indexes = np.minimum(np.searchsorted(run, numbers), len(run) - 1)
            contained |= run[indexes] == numbers
        return contained

    def add(self, numbers: Numbers) -> None:
        """Add numbers that are in order."""
        if len(numbers):
            self._runs.append(numbers)
        while len(self._runs) > 1 and len(self._runs[-2]) < min(2 * len(self._runs[-1]), self._longest):
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            # A stable sort merges sorted runs in one pass.
            merged.sort(kind="stable")
            self._runs.append(merged)


Predicate: TypeAlias = str | None
"""A predicate, or None for the ids of events, which are treated as subjects."""

# Hashes of a predicate's triples together with its ends: the rows are read once for both.
_NEW = """
SELECT predicate, list(hash(subject, predicate, object)) AS hashes, min(subject) AS least, max(subject) AS greatest
FROM {rows} GROUP BY predicate
UNION ALL SELECT NULL, list(hash(graph)), min(graph), max(graph) FROM {rows} WHERE quad = 0 HAVING count(*) > 0
"""


class _Generation:
    """The triples of an interval of time: hashes, and the greatest subject of each predicate."""

    def __init__(self) -> None:
        self.hashes, self.rows = SortedRuns(), 0
        self.greatest: dict[Predicate, str] = {}

    def reaches(self, predicate: Predicate, subject: str) -> bool:
        """Whether the predicate had this subject or a greater one."""
        return predicate in self.greatest and subject <= self.greatest[predicate]

    def raise_to(self, greatest: Iterable[tuple[Predicate, str]]) -> None:
        for predicate, subject in greatest:
            self.greatest[predicate] = max(subject, self.greatest.get(predicate, subject))


class DuplicateIndex(IncrementalView):
    """The predicates with duplicate triples in the lake, found over one connection."""

    def __init__(
        self, duck: duckdb.DuckDBPyConnection, hashed_quads: int = HASHED_QUADS, portion_quads: int = PORTION_QUADS
    ) -> None:
        self._duck = duck
        self._hashed_quads = hashed_quads
        super().__init__(portion_quads)

    def reset(self) -> None:
        super().reset()
        self._repeating = frozenset[Predicate]()
        self._oldest, self._older, self._newest = _Generation(), _Generation(), _Generation()
        """The oldest generation has no hashes."""

    def get(self, snapshot: Snapshot) -> frozenset[Predicate] | None:
        """Return the predicates that may have duplicate triples, with None among them if events may share an id.

        The result is None while that is unknown.
        """
        return self._repeating if self.holds(snapshot) else None

    def add(self, portion: SnapshotPortion) -> None:
        groups = self._duck.sql(_NEW.format(rows=portion.relation)).to_arrow_table()
        # A predicate with duplicates stays one: its hashes are not needed any more.
        new = [name not in self._repeating for name in groups["predicate"].to_pylist()]
        groups = groups.filter(pa.array(new, pa.bool_()))
        names, least, greatest = (groups[each].to_pylist() for each in ("predicate", "least", "greatest"))
        ends = list(zip(names, least, strict=True))
        late = {name for name, first in ends if self._oldest.reaches(name, first)}
        sought = [any(each.reaches(name, first) for each in (self._older, self._newest)) for name, first in ends]
        self._repeating |= late | self._find_duplicates(
            names, groups["hashes"].combine_chunks(), np.array(sought, np.bool_)
        )
        self._newest.raise_to(zip(names, greatest, strict=True))
        self._progress.mark_done(portion)
        if self._newest.rows > self._hashed_quads // 2:
            self._oldest.raise_to(self._older.greatest.items())
            self._older, self._newest = self._newest, _Generation()

    def _find_duplicates(
        self, names: Sequence[Predicate], lists: pa.ListArray[pa.UInt64Scalar], sought: Mask
    ) -> set[Predicate]:
        """Add hashes; return the predicates with a duplicate among them or, if `sought`, among earlier ones."""
        hashes = lists.flatten().to_numpy()
        order = np.argsort(hashes)
        ordered = hashes[order]
        owners = np.repeat(np.arange(len(names)), lists.value_lengths().to_numpy())[order]
        again = np.zeros(len(ordered), np.bool_)
        again[1:] = ordered[1:] == ordered[:-1]
        known = sought[owners]
        again[known] |= self._older.hashes.contains(ordered[known]) | self._newest.hashes.contains(ordered[known])
        self._newest.hashes.add(ordered)
        self._newest.rows += len(ordered)
        return {names[number] for number in np.unique(owners[again])}
