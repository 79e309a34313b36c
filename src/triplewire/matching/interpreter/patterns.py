"""Triple patterns, property paths, conjunctions and bags, matched against the quads of one event.

The solutions of a conjunction are numbers of quads. A bag takes all values of a predicate in the event together and
pairs them one to one with the elements that are asked for (bipartite matching).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from triplewire.matching.interpreter.expressions import ExpressionCompiler
from triplewire.matching.interpreter.runs import (
    InterpreterRun,
    NotInterpretable,
    OperatorFunction,
    ParsedEvent,
    Quad,
    Row,
    RowLayout,
    TestFunction,
)
from triplewire.model.terms import RDF
from triplewire.sparql import Conjunction
from triplewire.sparql.algebra import HEADER_PREDICATES, Bag, Const, Operator, Pattern, Reach, Repeat
from triplewire.sparql.dialects.duckdb import maximum_matching
from triplewire.sparql.paths import evaluate_path
from triplewire.sparql.traversal import mentioned_variables, pattern_variables

Source: TypeAlias = Callable[[ParsedEvent], Sequence[Quad]]
"""The quads that a pattern may match, by its predicate."""


def quad_source(pattern: Pattern, *, stored: bool) -> Source:
    """The source of a pattern's quads; without headers if all triples must be `stored`."""
    if not isinstance(pattern.predicate, Const):
        return lambda event: event.quads
    term = pattern.predicate.term
    if term in HEADER_PREDICATES and not stored:
        return lambda event: event.header(term)
    return lambda event: event.by.get(term, ())


def match_pattern(layout: RowLayout, pattern: Pattern, *, stored: bool) -> OperatorFunction:
    """The solutions of one pattern."""
    if pattern.graph is not None:
        raise NotInterpretable(pattern)
    source = quad_source(pattern, stored=stored)
    slots = layout.slot(pattern.subject), layout.slot(pattern.predicate), layout.slot(pattern.object)
    if len(set(slots)) < len(slots) or not isinstance(pattern.predicate, Const):
        return _match_any(source, slots)
    start, _, end = slots

    def scanned(run: InterpreterRun, row: Row) -> list[Row]:
        subject, obj, found = row[start], row[end], []
        quads = source(run.event)
        run.spend(len(quads))
        for quad in quads:
            if (subject is None or subject == quad[0]) and (obj is None or obj == quad[2]):
                made = row.copy()
                made[start], made[end] = quad[0], quad[2]
                found.append(made)
        return found

    return scanned


def _match_any(source: Source, slots: Sequence[int]) -> OperatorFunction:
    """The general case: a predicate that is no constant, or a variable that occurs twice."""

    def scanned(run: InterpreterRun, row: Row) -> list[Row]:
        quads = source(run.event)
        run.spend(len(quads))
        return [made for quad in quads if (made := bind_terms(row, slots, quad)) is not None]

    return scanned


def bind_terms(row: Row, slots: Sequence[int], terms: Sequence[str | int]) -> Row | None:
    """The solution with terms in these slots; None if it has others there."""
    made = row.copy()
    for slot, term in zip(slots, terms, strict=False):
        assert isinstance(term, str)
        if made[slot] is None:
            made[slot] = term
        elif made[slot] != term:
            return None
    return made


def match_path(layout: RowLayout, given: Reach) -> OperatorFunction:
    """Pairs of nodes that a repeating path connects, each once."""
    path = given.path
    if not isinstance(path, Repeat) or given.graph is not None:
        raise NotInterpretable(given)
    slots = layout.slot(given.subject), layout.slot(given.object)
    named = [each.term for each in (given.subject, given.object) if isinstance(each, Const)][:1]
    alone = frozenset((each, each) for each in named) if path.least == 0 else frozenset()

    def reached(run: InterpreterRun, row: Row) -> list[Row]:
        quads = run.event.quads
        run.spend(len(quads) ** 2)
        pairs = evaluate_path(path, [quad[:3] for quad in quads]) | alone
        return [made for pair in pairs if (made := bind_terms(row, slots, pair)) is not None]

    return reached


Numbers: TypeAlias = tuple[int, ...]
NumberedRows: TypeAlias = list[tuple[Row, Numbers]]
"""Solutions, each with the numbers of the quads that its patterns matched."""
ConjunctionStep: TypeAlias = Callable[[InterpreterRun, NumberedRows], NumberedRows]


def match_conjunction(layout: RowLayout, query: Conjunction) -> Callable[[InterpreterRun, Row], list[Numbers]]:
    """The quad numbers of each solution, in ascending order. A filter is tested as soon as all its variables are
    bound."""
    expressions = ExpressionCompiler(layout, _refuse)
    left = [(mentioned_variables(each), expressions.test(each)) for each in query.filters]
    steps, known = list[ConjunctionStep](), frozenset[str]()
    for pattern in query.patterns:
        steps.append(_pattern_step(layout, pattern))
        known |= pattern_variables(pattern)
        steps += [_filter_step(test) for names, test in left if names <= known]
        left = [(names, test) for names, test in left if not names <= known]
    steps += [_filter_step(test) for _, test in left]

    def found(run: InterpreterRun, row: Row) -> list[Numbers]:
        taken: NumberedRows = [(row, ())]
        for step in steps:
            taken = step(run, taken)
            if not taken:
                return []
        return sorted([numbers for _, numbers in taken])

    return found


def _refuse(operator: Operator) -> OperatorFunction:
    raise NotInterpretable(operator)


def _filter_step(test: TestFunction) -> ConjunctionStep:
    return lambda run, taken: [each for each in taken if test(run, each[0])]


def _pattern_step(layout: RowLayout, pattern: Pattern) -> ConjunctionStep:
    source = quad_source(pattern, stored=pattern.graph is not None)
    slots = layout.slot(pattern.subject), layout.slot(pattern.predicate), layout.slot(pattern.object)
    return (
        _default_step(source, slots)
        if pattern.graph is None
        else _graph_step(source, slots, layout.slot(pattern.graph))
    )


def _default_step(source: Source, slots: Sequence[int]) -> ConjunctionStep:
    start, _, end = slots

    def taking(run: InterpreterRun, taken: NumberedRows) -> NumberedRows:
        quads, found = source(run.event), []
        run.spend(len(quads) * len(taken))
        for row, numbers in taken:
            subject, obj = row[start], row[end]
            for quad in quads:
                if (subject is None or subject == quad[0]) and (obj is None or obj == quad[2]):
                    made = bind_terms(row, slots, quad)
                    if made is not None:
                        found.append((made, (*numbers, quad[3])))
        return found

    return taking


def _graph_step(source: Source, slots: Sequence[int], graph: int) -> ConjunctionStep:
    simple = _default_step(source, slots)

    def taking(run: InterpreterRun, taken: NumberedRows) -> NumberedRows:
        named = [(made, numbers) for row, numbers in taken if (made := bind_terms(row, (graph,), (run.event.graph,)))]
        return simple(run, named)

    return taking


_FIRST, _REST, _NIL = (f"<{RDF}{name}>" for name in ("first", "rest", "nil"))
Cells: TypeAlias = Mapping[str, Sequence[str]]


def match_bag(layout: RowLayout, bag: Bag, tests: Sequence[TestFunction]) -> OperatorFunction:
    """The given solution, if the bag fits. `tests` are the conditions of its elements."""
    if bag.predicate.term in HEADER_PREDICATES or mentioned_variables(bag):
        raise NotInterpretable(bag)
    predicate, slot, size = bag.predicate.term, layout.variable(bag.member), len(tests)
    all_values, all_elements = bag.relation != "#>", bag.relation != "#<"

    def found(run: InterpreterRun, row: Row) -> list[Row]:
        if predicate not in run.event.by:
            return []
        values = bag_members(run, predicate)
        count = len(values)
        if (all_values and count > size) or (all_elements and count < size):
            return []
        run.spend(count * max(1, size))
        masks = _masks(run, row, slot, values, tests)
        return [row] if has_pairing(masks if all_values else _transpose(masks, size)) else []

    return found


def bag_members(run: InterpreterRun, predicate: str) -> list[str]:
    """The objects of a predicate, once for each triple, with the members of lists in place of the lists."""
    objects = [quad[2] for quad in run.event.by.get(predicate, ())]
    if _FIRST not in run.event.by:
        return [each for each in objects if each != _NIL]
    holds, leads = _cells(run, _FIRST), _cells(run, _REST)
    return [value for each in objects for value in _list_members(run, each, holds, leads)]


def _cells(run: InterpreterRun, predicate: str) -> dict[str, list[str]]:
    """The first or rest of each list cell."""
    quads = run.event.by.get(predicate, ())
    run.spend(len(quads))
    found = dict[str, list[str]]()
    for subject, _, object_, _ in quads:
        found.setdefault(subject, []).append(object_)
    return found


def _list_members(run: InterpreterRun, start: str, holds: Cells, leads: Cells) -> list[str]:
    """The members of a list and of all cells that it leads to, each cell once; a term that is no cell stands for
    itself."""
    cells, edge = dict[str, None](), [start]
    while edge:
        onward = [each for cell in edge for each in leads.get(cell, ())]
        run.spend(len(onward))
        edge = [*dict.fromkeys(each for each in onward if each not in cells)]
        cells |= dict.fromkeys(edge)
    found = [value for cell in (start, *cells) for value in holds.get(cell, ())]
    run.spend(len(found))
    return found or [each for each in (start,) if each != _NIL]


def _masks(run: InterpreterRun, row: Row, slot: int, values: Sequence[str], tests: Sequence[TestFunction]) -> list[int]:
    """For each value, a bit for each element that it can be paired with."""
    bits, made, known = [(1 << at, test) for at, test in enumerate(tests)], row.copy(), dict[str, int]()
    for value in values:
        if value not in known:
            made[slot] = value
            known[value] = sum([bit for bit, test in bits if test(run, made)])
    return [known[value] for value in values]


def _transpose(masks: Sequence[int], size: int) -> list[int]:
    """For each element, a bit for each value."""
    return [sum([1 << at for at, mask in enumerate(masks) if mask >> element & 1]) for element in range(size)]


def has_pairing(masks: Sequence[int]) -> bool:
    """Can each mask have a bit of its own?"""
    return all(masks) and maximum_matching(masks) == len(masks)
