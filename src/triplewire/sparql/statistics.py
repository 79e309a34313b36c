"""Statistics of the stored data by predicate, and the context that optimizer rules are given.

Counts serve planning alone: no answer depends on them. Uniqueness and term families are relied on by the compiler, so
they must hold for all data that the query reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from triplewire.sparql.algebra import Family, Var

# Counts are for planning: answers never depend on them. What is said of repetition and of families is relied on, so it
# must hold for all of the data that the query reads.

PREDICATE_NUMBER = "predicate_number"
"""The column of `quads` that holds numbers of predicates, where there are any."""

TERM_ID = "id"
"""The columns of `quads` with numbers of terms are called `subject_id` and `object_id`, where there are any."""

OFTEN = 1.5
"""Rows per triple from which on it pays to make a scan distinct before it is joined."""


@dataclass(frozen=True)
class TripleCounts:
    """Of the triples of one predicate, about."""

    rows: int
    triples: int
    subjects: int
    objects: int


@dataclass(frozen=True)
class PredicateKind:
    """What the triples of one predicate are, all of them: the families of their objects, whether every exact number
    among these is `short` enough for a double, whether each triple is there only once, and whether every time among
    the objects names its zone."""

    families: frozenset[Family] = frozenset(Family)
    short: bool = False
    unique: bool = False
    zoned: bool = False


UNKNOWN_KIND = PredicateKind()


@dataclass(frozen=True, eq=False)
class Statistics:
    """By predicate, as a term. With `complete` there are no triples of any other predicate; `blank` says whether a
    subject may be a blank node. Two are the same only if they are one."""

    predicates: Mapping[str, TripleCounts] = field(default_factory=dict)
    total: TripleCounts = TripleCounts(0, 0, 0, 0)
    kinds: Mapping[str, PredicateKind] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    """What the predicates are numbered as in a column of `quads`, if it has one."""
    identified: bool = False
    """Does `quads` have columns that hold a number for each subject and object, the same for the same term?"""
    complete: bool = False
    blank: bool = True
    single: bool = False
    """Has no event the id of another?"""

    def without(self, repeating: Collection[str | None]) -> Statistics:
        """The same where all triples but those of these predicates are there only once, and so, unless None is among
        them, are the ids of events."""
        kinds = {name: replace(kind, unique=name not in repeating) for name, kind in self.kinds.items()}
        return replace(self, kinds=kinds, single=None not in repeating)

    def repeated(self, predicate: str) -> bool:
        """Do events say the same triples of this predicate again and again?"""
        found = self.predicates.get(predicate, self.total)
        return found.rows > OFTEN * found.triples

    def kind(self, predicate: str | None) -> PredicateKind:
        """Of a predicate, or of all."""
        if predicate is not None:
            return self.kinds.get(predicate, UNKNOWN_KIND)
        return self._all if self.complete else UNKNOWN_KIND

    @property
    def _all(self) -> PredicateKind:
        kinds = self.kinds.values()
        return PredicateKind(
            families=frozenset().union(*(each.families for each in kinds)),
            short=all(each.short for each in kinds),
            unique=all(each.unique for each in kinds),
            zoned=all(each.zoned for each in kinds),
        )

    def matches(self, predicate: str | None, *, subject: bool, object_: bool) -> float:
        """About how many triples a pattern has, by what in it is known."""
        found = self.total if predicate is None else self.predicates.get(predicate)
        if found is None:
            return 0.0 if self.predicates else 1.0
        count = float(found.triples)
        if subject:
            count /= max(found.subjects, 1)
        return count / max(found.objects, 1) if object_ else count


# Plannings: what rules go by while one query is planned.


@dataclass(frozen=True)
class OptimizerContext:
    """The statistics of the data, and names for variables that a rule makes."""

    statistics: Statistics = field(default_factory=Statistics)
    _numbers: count[int] = field(default_factory=count)

    def fresh(self) -> Var:
        """A variable that the query does not have."""
        return Var(f".n{next(self._numbers)}")
