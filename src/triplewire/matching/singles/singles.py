"""Singles: one subscription on one event, decided without an engine where that is surely right.

What is not known of a shape shows when it is made (`single_of` gives None), what is not known of a pair when that is
looked at (`solve` gives None). Nothing is guessed: both are then for the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeVar

from triplewire.config.limits import SINGLE_STEPS, SOLUTIONS
from triplewire.matching.shapes import Shape
from triplewire.matching.singles.conjunctions import numbered
from triplewire.matching.singles.events import Parsed
from triplewire.matching.singles.facts import Undecided
from triplewire.matching.singles.operators import Operators
from triplewire.matching.singles.runs import Known, Row, Run, Seeds, Slots, Unknown
from triplewire.matching.singles.selections import Terms, tabulated
from triplewire.sparql import Conjunction, Query
from triplewire.sparql.algebra import Select
from triplewire.sparql.compiler.scans import STREAM_PREDICATE
from triplewire.sparql.queries import ensure_recursion_limit
from triplewire.sparql.traversal import find_parameters


class Rows(NamedTuple):
    """What a row of `MATCHES` says of a pair. One that does not match has none of it."""

    matched: bool
    solutions: list[int] | None = None
    terms: list[str | None] | None = None


NO_MATCH = Rows(False)
MATCH = Rows(True)

Found = TypeVar("Found")
Solving: TypeAlias = Callable[[Run, Row], Rows]


@dataclass(frozen=True)
class Single:
    """The query of a shape as a function. Safe for threads as long as events are not shared between them."""

    solving: Solving
    seeds: Seeds
    stream: int | None
    """The constant that names the stream of the event, if one does."""

    def solve(self, event: Parsed, constants: Sequence[str], ontologies: Known | None = None) -> Rows | None:
        """What the evaluator would say of the event and the subscription with these constants; None where that is not
        surely known, or too much work, or needs ontologies that are not given."""
        try:
            if not event.whole:
                return None
            if self.stream is not None and event.header(STREAM_PREDICATE.term)[0][2] != constants[self.stream]:
                return NO_MATCH
            return self.solving(Run(event, SINGLE_STEPS, ontologies), self.seeds.seed(constants))
        except Undecided:
            return None


def single_of(shape: Shape) -> Single | None:
    """The query of a shape, made ready; None for one that has parts which are not known here."""
    ensure_recursion_limit()
    slots = Slots.of(shape.query)
    try:
        solving = (
            _whole(slots, shape, shape.query) if isinstance(shape.query, Query) else _flat(slots, shape, shape.query)
        )
    except Unknown:
        return None
    stream = None
    if isinstance(shape.query, Query) and shape.stream:
        stream = max(find_parameters(shape.query), default=-1) + 1
    return Single(solving, Seeds(slots), stream)


def _flat(slots: Slots, shape: Shape, query: Conjunction) -> Solving:
    take = numbered(slots, query)

    def solving(run: Run, row: Row) -> Rows:
        found = take(run, row)
        if not found or not shape.solutions:
            return MATCH if found else NO_MATCH
        _bounded(found)
        return Rows(True, solutions=[*chain.from_iterable(found)])

    return solving


def _whole(slots: Slots, shape: Shape, query: Query) -> Solving:
    operators = Operators(slots)
    if not (shape.solutions and query.form == "select"):
        operate = operators.made(query.where)
        return lambda run, row: MATCH if operate(run, row) else NO_MATCH
    select = query.where
    if not isinstance(select, Select):
        raise Unknown(query)
    tabulate = tabulated(slots, select, operators.made(select.inner), operators.expressions.value)
    order = [select.projection.index(name) for name in query.projection]

    def solving(run: Run, row: Row) -> Rows:
        found = _bounded(tabulate(run, row))
        told = sorted([(rank, *(terms[place] for place in order)) for rank, terms in found], key=_nothing_last)
        return Rows(True, terms=[*chain.from_iterable(told)]) if told else NO_MATCH

    return solving


def _bounded(found: list[Found]) -> list[Found]:
    """The evaluator knows what to tell of more."""
    if len(found) > SOLUTIONS:
        raise Undecided
    return found


def _nothing_last(terms: Terms) -> list[tuple[bool, str]]:
    """As DuckDB sorts lists."""
    return [(term is None, term or "") for term in terms]
