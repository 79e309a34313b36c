"""Forms: filters without their operands, so that what is known of one is known of all that differ in these alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from triplewire.filters.constraints import Constraint, Filter
from triplewire.filters.documents import parse
from triplewire.filters.queries import asked, distinct
from triplewire.filters.relations import Bagged, Relation
from triplewire.sparql import Query


@dataclass(frozen=True)
class Blank:
    """A constraint without its operands; `sizes` says how many terms each of them has."""

    attribute: str
    relation: Relation
    bag: Bagged | None
    sizes: tuple[int, ...]

    def filled(self, terms: Iterator[str]) -> Constraint:
        operands = tuple([tuple([next(terms) for _ in range(size)]) for size in self.sizes])
        return Constraint(self.attribute, self.relation, operands, self.bag)


@dataclass(frozen=True)
class Form:
    """Filters in the one order that they have as a query."""

    filters: tuple[tuple[Blank, ...], ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Made once, and of less than all: it is asked for often."""
        return hash(tuple([(each.attribute, each.relation.symbol, each.bag) for one in self.filters for each in one]))

    def query(self, terms: Sequence[str]) -> Query:
        """What the filters ask with these terms, one after the other, in their operands."""
        left = iter(terms)
        return asked([tuple([blank.filled(left) for blank in blanks]) for blanks in self.filters])


def form_of(value: Mapping[str, object]) -> tuple[Form, tuple[str, ...]]:
    """The form of a JSON document with `filter` or `filters`, and perhaps `prefixes`, and its terms. Raises Unfit."""
    return taken_apart(parse(value))


def taken_apart(filters: Iterable[Filter]) -> tuple[Form, tuple[str, ...]]:
    """`form.query(terms)` is the query of the filters."""
    ordered = distinct(filters)
    form = Form(tuple([tuple([_blank(each) for each in constraints]) for constraints in ordered]))
    operands = (operand for constraints in ordered for each in constraints for operand in each.operands)
    return form, tuple([term for operand in operands for term in operand])


def _blank(constraint: Constraint) -> Blank:
    sizes = tuple([len(each) for each in constraint.operands])
    return Blank(constraint.attribute, constraint.relation, constraint.bag, sizes)
