"""The interpreter: decides a few pairs of event and subscription without a database engine, where planning a query
would cost more.

Nothing is guessed. A shape with parts that it does not know has no interpreted query, and a pair that it cannot decide
with certainty is left to the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple, TypeAlias, TypeVar

import pyarrow as pa

from triplewire.matching.interpreter import runs
from triplewire.matching.interpreter.modifiers import tabulate_solutions
from triplewire.matching.interpreter.operators import OperatorCompiler
from triplewire.matching.interpreter.patterns import match_conjunction
from triplewire.matching.interpreter.values import Undecided
from triplewire.matching.plans import SOLUTIONS
from triplewire.matching.shapes import Shape
from triplewire.model import MATCHES, Subscription, no_matches
from triplewire.model.events import MATCHED_COLUMNS
from triplewire.security.visibility import Visibility
from triplewire.sparql import Conjunction, Query
from triplewire.sparql.algebra import STREAM_PREDICATE, Select
from triplewire.sparql.parameters import find_parameters
from triplewire.sparql.queries import ensure_recursion_limit

INTERPRETER_STEPS: Final = 20_000
"""Quads and pairs of solutions that are tried for one subscription on one event: about 10 ms, as long as planning an
SQL query takes. Undecided pairs are left to the evaluator."""


class PairResult(NamedTuple):
    """The content of a row of `MATCHES` for a pair; empty if it does not match."""

    matched: bool
    solutions: list[int] | None = None
    terms: list[str | None] | None = None


NO_MATCH = PairResult(False)
MATCH = PairResult(True)

Found = TypeVar("Found")
Solving: TypeAlias = Callable[[runs.InterpreterRun, runs.Row], PairResult]


@dataclass(frozen=True)
class InterpretedQuery:
    """The query of a shape as a function. Thread-safe as long as threads do not share events."""

    solving: Solving
    seeds: runs.InitialRows
    stream: int | None
    """The number of the constant that names the stream, if there is one."""

    def solve(
        self, event: runs.ParsedEvent, constants: Sequence[str], ontologies: runs.OntologyRows | None = None
    ) -> PairResult | None:
        """The evaluator's result for an event and a subscription with these constants; None if it is not certain,
        too much work, or needs ontologies that are not given."""
        try:
            if not event.whole:
                return None
            if self.stream is not None and event.header(STREAM_PREDICATE.term)[0][2] != constants[self.stream]:
                return NO_MATCH
            return self.solving(runs.InterpreterRun(event, INTERPRETER_STEPS, ontologies), self.seeds.seed(constants))
        except Undecided:
            return None


def interpret_shape(shape: Shape) -> InterpretedQuery | None:
    """Compile the query of a shape; None if it has parts that the interpreter does not know."""
    ensure_recursion_limit()
    layout = runs.RowLayout.of(shape.query)
    try:
        solving = (
            _compile_query(layout, shape, shape.query)
            if isinstance(shape.query, Query)
            else _compile_conjunction(layout, shape, shape.query)
        )
    except runs.NotInterpretable:
        return None
    stream = None
    if isinstance(shape.query, Query) and shape.stream:
        stream = max(find_parameters(shape.query), default=-1) + 1
    return InterpretedQuery(solving, runs.InitialRows(layout), stream)


def _compile_conjunction(layout: runs.RowLayout, shape: Shape, query: Conjunction) -> Solving:
    take = match_conjunction(layout, query)

    def solving(run: runs.InterpreterRun, row: runs.Row) -> PairResult:
        found = take(run, row)
        if not found or not shape.solutions:
            return MATCH if found else NO_MATCH
        _check_count(found)
        return PairResult(True, solutions=[*chain.from_iterable(found)])

    return solving


def _compile_query(layout: runs.RowLayout, shape: Shape, query: Query) -> Solving:
    operators = OperatorCompiler(layout)
    if not (shape.solutions and query.form == "select"):
        operate = operators.compile(query.where)
        return lambda run, row: MATCH if operate(run, row) else NO_MATCH
    select = query.where
    if not isinstance(select, Select):
        raise runs.NotInterpretable(query)
    tabulate = tabulate_solutions(layout, select, operators.compile(select.inner), operators.expressions.value)
    order = [select.projection.index(name) for name in query.projection]

    def solving(run: runs.InterpreterRun, row: runs.Row) -> PairResult:
        found = _check_count(tabulate(run, row))
        solved = [(rank, *(terms[slot] for slot in order)) for rank, terms in found]
        # DuckDB sorts lists so that nulls come last.
        solved.sort(key=lambda terms: [(term is None, term or "") for term in terms])
        return PairResult(True, terms=[*chain.from_iterable(solved)]) if solved else NO_MATCH

    return solving


def _check_count(found: list[Found]) -> list[Found]:
    """Leave results with too many solutions to the evaluator, which reports the limit."""
    if len(found) > SOLUTIONS:
        raise Undecided
    return found


Pair: TypeAlias = tuple[int, Subscription]
"""The index of an event in its batch, and a subscription."""


class InterpreterBatch:
    """A batch of `ENTRIES`, with the ontologies at its events, and the visibility that restricts it. Events are
    parsed on first use, once for all shapes."""

    def __init__(
        self, entries: pa.Table, ontologies: runs.OntologyRows | None = None, visibility: Visibility | None = None
    ) -> None:
        self._ontologies = ontologies
        self._visibility = visibility
        self._columns = [(name, entries.column(name)) for name in MATCHED_COLUMNS]
        self._events = dict[int, runs.ParsedEvent | None]()

    def decide(self, pairs: Sequence[Pair], single: InterpretedQuery | None) -> tuple[pa.Table, list[Pair]]:
        """The matches among some pairs, all of one shape, as a `MATCHES` table sorted by position and subscription;
        and the pairs that are left to the evaluator, which are all if the shape has no interpreted query. Whether a
        subscription exists at the position of an event is not checked."""
        if single is None or not pairs:
            return no_matches(), [*pairs]
        found, left = list[tuple[int, int, PairResult]](), list[Pair]()
        for pair in pairs:
            event, subscription = self._event(pair[0]), pair[1]
            if event is None:
                continue
            rows = single.solve(event, subscription.constants, self._ontologies)
            if rows is None:
                left.append(pair)
            elif rows.matched:
                found.append((event.position, subscription.since, rows))
        return _table(found), left

    def _event(self, index: int) -> runs.ParsedEvent | None:
        """The parsed event, or None if it is hidden."""
        if index not in self._events:
            entry = {name: column[index].as_py() for name, column in self._columns}
            if self._visibility is not None:
                entry["text"] = self._visibility.redacted(entry["stream"], entry["event"], entry["text"])
            self._events[index] = None if entry["text"] is None else runs.ParsedEvent(entry)
        return self._events[index]


def _table(found: Sequence[tuple[int, int, PairResult]]) -> pa.Table:
    if not found:
        return no_matches()
    ordered = sorted(found, key=lambda each: each[:2])
    made = {
        "position": [each[0] for each in ordered],
        "subscription": [each[1] for each in ordered],
        "solutions": [each[2].solutions for each in ordered],
        "terms": [each[2].terms for each in ordered],
    }
    none = [None] * len(ordered)
    return pa.table([pa.array(made.get(field.name, none), field.type) for field in MATCHES], schema=MATCHES)
