"""Scans: triple patterns and paths, tried on the quads of one event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from triplewire.matching.singles.events import Parsed, Quad
from triplewire.matching.singles.runs import Operate, Row, Run, Slots, Unknown
from triplewire.sparql.algebra import Const, Pattern, Reach, Repeat
from triplewire.sparql.compiler.scans import HEADER_PREDICATES
from triplewire.sparql.paths import evaluate_path

Source: TypeAlias = Callable[[Parsed], Sequence[Quad]]
"""The quads that a pattern may take, by its predicate."""


def source_of(pattern: Pattern, *, stored: bool) -> Source:
    """Where all triples are `stored` ones no header is among them."""
    if not isinstance(pattern.predicate, Const):
        return lambda event: event.quads
    term = pattern.predicate.term
    if term in HEADER_PREDICATES and not stored:
        return lambda event: event.header(term)
    return lambda event: event.by.get(term, ())


def scan(slots: Slots, pattern: Pattern, *, stored: bool) -> Operate:
    """The solutions of one pattern."""
    if pattern.graph is not None:
        raise Unknown(pattern)
    source = source_of(pattern, stored=stored)
    places = slots.place(pattern.subject), slots.place(pattern.predicate), slots.place(pattern.object)
    if len(set(places)) < len(places) or not isinstance(pattern.predicate, Const):
        return _generally(source, places)
    start, _, end = places

    def scanned(run: Run, row: Row) -> list[Row]:
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


def _generally(source: Source, places: Sequence[int]) -> Operate:
    """For predicates that are no constants, and for variables that come twice."""

    def scanned(run: Run, row: Row) -> list[Row]:
        quads = source(run.event)
        run.spend(len(quads))
        return [made for quad in quads if (made := placed(row, places, quad)) is not None]

    return scanned


def placed(row: Row, places: Sequence[int], terms: Sequence[str | int]) -> Row | None:
    """The solution with terms in these places; None where it has others there."""
    made = row.copy()
    for place, term in zip(places, terms, strict=False):
        assert isinstance(term, str)
        if made[place] is None:
            made[place] = term
        elif made[place] != term:
            return None
    return made


def reach(slots: Slots, given: Reach) -> Operate:
    """Pairs of nodes between which a path leads, each once, for a path that repeats."""
    path = given.path
    if not isinstance(path, Repeat) or given.graph is not None:
        raise Unknown(given)
    places = slots.place(given.subject), slots.place(given.object)
    named = [each.term for each in (given.subject, given.object) if isinstance(each, Const)][:1]
    alone = frozenset((each, each) for each in named) if path.least == 0 else frozenset()

    def reached(run: Run, row: Row) -> list[Row]:
        quads = run.event.quads
        run.spend(len(quads) ** 2)
        pairs = evaluate_path(path, [quad[:3] for quad in quads]) | alone
        return [made for pair in pairs if (made := placed(row, places, pair)) is not None]

    return reached
