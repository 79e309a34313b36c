"""Conjunctions: patterns and filters, whose solutions are numbers of quads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from triplewire.matching.singles.expressions import Expressions
from triplewire.matching.singles.runs import Operate, Row, Run, Slots, Test, Unknown
from triplewire.matching.singles.scans import Source, placed, source_of
from triplewire.sparql import Conjunction
from triplewire.sparql.algebra import Operator, Pattern
from triplewire.sparql.traversal import mentioned_variables, pattern_variables

Numbers: TypeAlias = tuple[int, ...]
Taken: TypeAlias = list[tuple[Row, Numbers]]
"""Solutions, each with the numbers of the quads that its patterns took."""
Taking: TypeAlias = Callable[[Run, Taken], Taken]


def numbered(slots: Slots, query: Conjunction) -> Callable[[Run, Row], list[Numbers]]:
    """The numbers of the quads of each solution, in ascending order. A filter is tried as soon as all that it speaks of
    has a value."""
    expressions = Expressions(slots, _none)
    left = [(mentioned_variables(each), expressions.test(each)) for each in query.filters]
    steps, known = list[Taking](), frozenset[str]()
    for pattern in query.patterns:
        steps.append(_taking(slots, pattern))
        known |= pattern_variables(pattern)
        steps += [_keeping(test) for names, test in left if names <= known]
        left = [(names, test) for names, test in left if not names <= known]
    steps += [_keeping(test) for _, test in left]

    def found(run: Run, row: Row) -> list[Numbers]:
        taken: Taken = [(row, ())]
        for step in steps:
            taken = step(run, taken)
            if not taken:
                return []
        return sorted([numbers for _, numbers in taken])

    return found


def _none(operator: Operator) -> Operate:
    raise Unknown(operator)


def _keeping(test: Test) -> Taking:
    return lambda run, taken: [each for each in taken if test(run, each[0])]


def _taking(slots: Slots, pattern: Pattern) -> Taking:
    source = source_of(pattern, stored=pattern.graph is not None)
    places = slots.place(pattern.subject), slots.place(pattern.predicate), slots.place(pattern.object)
    return _simply(source, places) if pattern.graph is None else _in_graph(source, places, slots.place(pattern.graph))


def _simply(source: Source, places: Sequence[int]) -> Taking:
    start, _, end = places

    def taking(run: Run, taken: Taken) -> Taken:
        quads, found = source(run.event), []
        run.spend(len(quads) * len(taken))
        for row, numbers in taken:
            subject, obj = row[start], row[end]
            for quad in quads:
                if (subject is None or subject == quad[0]) and (obj is None or obj == quad[2]):
                    made = placed(row, places, quad)
                    if made is not None:
                        found.append((made, (*numbers, quad[3])))
        return found

    return taking


def _in_graph(source: Source, places: Sequence[int], graph: int) -> Taking:
    simple = _simply(source, places)

    def taking(run: Run, taken: Taken) -> Taken:
        named = [(made, numbers) for row, numbers in taken if (made := placed(row, (graph,), (run.event.graph,)))]
        return simple(run, named)

    return taking
