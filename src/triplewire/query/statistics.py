"""Statistics of the lake, kept up as it grows.

Files never change, so what is exact is counted once for each: the kinds of objects that a predicate has, and whether
a triple comes twice. The latter by hashes: two triples of one hash may be one triple, two of different hashes are not.
How values spread is estimated anew when the lake has grown by a fifth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import duckdb

from triplewire.config.limits import HASHED_QUADS
from triplewire.model.terms import RDF_LANG_STRING, XSD, XSD_STRING
from triplewire.query.views import parquet
from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.columns import SHORT_EXACT
from triplewire.sparql.compile.facets import INTEGERS
from triplewire.sparql.queries import NOTHING
from triplewire.sparql.statistics import Counts, Kind, Statistics

GROWTH = 1.2
"""How much larger the lake must be before estimating again pays: the estimates are then still right within a fifth,
and all estimating together takes no longer than six times that at the end."""

_ESTIMATE = """
SELECT predicate, count(*), approx_count_distinct(hash(subject, object)), approx_count_distinct(subject),
       approx_count_distinct(object)
FROM {files} GROUP BY GROUPING SETS ((predicate), ())
"""
_FACTS = """
SELECT predicate, object_kind, object_datatype, count(*), count(object_number), count(object_time),
       max(length(object)), bool_or(starts_with(object, '_:')), bool_or(starts_with(subject, '_:')),
       bool_and(object_time IS NULL OR regexp_matches(object, '(Z|[+-][0-9][0-9]:[0-9][0-9])"'))
FROM {files} GROUP BY ALL
"""
_NEW = "CREATE OR REPLACE TEMP TABLE new_hashes AS SELECT predicate, hash(subject, predicate, object) AS h FROM {files}"
_TWICE = """
SELECT DISTINCT predicate FROM new_hashes SEMI JOIN hashes USING (h)
UNION SELECT predicate FROM new_hashes GROUP BY predicate, h HAVING count(*) > 1
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


@dataclass(frozen=True)
class _Fact:
    """Objects of one predicate, kind and datatype in some files."""

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
    """What is known of the files that were seen. Belongs to one connection."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck
        self._files: set[str]
        self._facts: list[_Fact]
        self._repeating: set[str]
        self._estimates: dict[str | None, Counts] = {}
        self._summed = -1
        self._begin()

    def of(self, files: Sequence[str]) -> Statistics:
        """Of these files, if they are all that was counted and summed up; else nothing is known."""
        whole = self._files == set(files) and len(self._facts) == self._summed
        return self._found if whole else NOTHING

    def missing(self, files: Sequence[str]) -> list[str]:
        """Those that are yet to be counted. Where one is gone, everything begins anew."""
        if not self._files <= set(files):
            self._begin()
        return [path for path in files if path not in self._files]

    def take(self, path: str) -> None:
        """Count one file."""
        self._count(parquet([path]))
        self._files.add(path)

    def finish(self) -> None:
        """Sum up what was counted, with estimates that are new enough."""
        if not self._estimated <= self._rows <= self._estimated * GROWTH:
            self._estimate()
        if len(self._facts) != self._summed:
            self._found, self._summed = self._statistics(), len(self._facts)

    def _begin(self) -> None:
        """From nothing: there are no files yet, or some are gone."""
        self._duck.execute("CREATE OR REPLACE TEMP TABLE hashes (h UBIGINT)")
        self._files, self._facts, self._repeating, self._rows = set(), [], set(), 0
        self._estimated, self._summed, self._found = -1, -1, Statistics()

    def _count(self, files: str) -> None:
        facts = [_Fact(*row) for row in self._duck.execute(_FACTS.format(files=files)).fetchall()]
        self._facts = [*self._facts, *facts]
        self._rows += sum(each.rows for each in facts)
        if self._rows > HASHED_QUADS:
            self._duck.execute("DELETE FROM hashes")
            self._repeating |= {each.predicate for each in self._facts}
            return
        self._duck.execute(_NEW.format(files=files))
        self._repeating |= {predicate for (predicate,) in self._duck.execute(_TWICE).fetchall()}
        self._duck.execute("INSERT INTO hashes SELECT h FROM new_hashes")

    def _estimate(self) -> None:
        query = _ESTIMATE.format(files=parquet(self._files))
        rows = self._duck.execute(query).fetchall() if self._files else []
        self._estimates = {row[0]: Counts(row[1], min(row[1], row[2]), row[3], row[4]) for row in rows}
        self._estimated = self._rows

    def _statistics(self) -> Statistics:
        counts = {name: found for name, found in self._estimates.items() if name is not None}
        return Statistics(
            predicates=counts,
            total=self._estimates.get(None, Counts(0, 0, 0, 0)),
            kinds={name: self._kind(facts) for name, facts in _by_predicate(self._facts).items()},
            complete=True,
            blank=any(each.blank_subject for each in self._facts),
        )

    def _kind(self, facts: Sequence[_Fact]) -> Kind:
        families = frozenset(family for each in facts for family in each.families())
        short = all(each.short() for each in facts)
        zoned = all(each.zoned for each in facts)
        return Kind(families, short=short, unique=facts[0].predicate not in self._repeating, zoned=zoned)


def _by_predicate(facts: Iterable[_Fact]) -> dict[str, list[_Fact]]:
    found: dict[str, list[_Fact]] = {}
    for each in facts:
        found.setdefault(each.predicate, []).append(each)
    return found
