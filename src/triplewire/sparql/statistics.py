"""Statistics of the stored data by predicate, and the context that optimizer rules are given.

Counts serve planning alone: no answer depends on them. Uniqueness and term families are relied on by the compiler, so
they must hold for all data that the query reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from triplewire.sparql.algebra import Family, Var

PREDICATE_NUMBER = "predicate_number"
"""The column of `quads` that holds numbers of predicates, where there are any."""

TERM_ID = "id"
"""The columns of `quads` with numbers of terms are called `subject_id` and `object_id`, where there are any."""

OFTEN = 1.5
"""The rows per triple above which a scan is made distinct before it is joined."""


@dataclass(frozen=True)
class TripleCounts:
    """Approximate counts of the triples of one predicate."""

    rows: int
    triples: int
    subjects: int
    objects: int


@dataclass(frozen=True)
class PredicateKind:
    """Facts that hold for all triples of one predicate: the families of their objects, whether every exact number among
    these is `short` enough for a double, whether each triple is stored only once, and whether every time among the
    objects names its zone."""

    families: frozenset[Family] = frozenset(Family)
    short: bool = False
    unique: bool = False
    zoned: bool = False


UNKNOWN_KIND = PredicateKind()


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics by predicate. With `complete` there are no triples of any other predicate; `blank` says whether a
    subject may be a blank node. Instances are compared by identity."""

    predicates: Mapping[str, TripleCounts] = field(default_factory=dict)
    total: TripleCounts = TripleCounts(0, 0, 0, 0)
    kinds: Mapping[str, PredicateKind] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The numbers of predicates in a column of `quads`, if it has one."""
    identified: bool = False
    """Whether `quads` has columns that hold a number for each subject and object, the same for the same term."""
    complete: bool = False
    blank: bool = True
    single: bool = False
    """Whether no two events have one id."""

    def without(self, repeating: Collection[str | None]) -> Statistics:
        """Return statistics that assume all triples unique, but for those of these predicates, and so, unless None is
        among them, event ids."""
        kinds = {name: replace(kind, unique=name not in repeating) for name, kind in self.kinds.items()}
        return replace(self, kinds=kinds, single=None not in repeating)

    def repeated(self, predicate: str) -> bool:
        """Tell whether events often repeat triples of this predicate."""
        found = self.predicates.get(predicate, self.total)
        return found.rows > OFTEN * found.triples

    def kind(self, predicate: str | None) -> PredicateKind:
        """Return the facts about a predicate, or about all if it is None."""
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
        """Estimate the number of triples that match a pattern, by which of its nodes are known."""
        found = self.total if predicate is None else self.predicates.get(predicate)
        if found is None:
            return 0.0 if self.predicates else 1.0
        count = float(found.triples)
        if subject:
            count /= max(found.subjects, 1)
        return count / max(found.objects, 1) if object_ else count


@dataclass(frozen=True)
class OptimizerContext:
    """The statistics of the data, and fresh names for variables that a rule creates."""

    statistics: Statistics = field(default_factory=Statistics)
    _numbers: count[int] = field(default_factory=count)

    def fresh(self) -> Var:
        """Return a variable that the query does not have."""
        return Var(f".n{next(self._numbers)}")
