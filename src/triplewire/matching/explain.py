"""Explains a match: which part of a query an event satisfied, and which one it failed first.

Each part of the query is asked of the event by itself, in a database of its own with a deadline. A conjunction is
explained as it was written, pattern by pattern and filter by filter, with the quads that match and the values that a
filter refused; any other query operator by operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from operator import attrgetter
from threading import Timer
from types import TracebackType
from typing import Any, Final, TypeAlias

import duckdb
import pyarrow as pa

from triplewire.matching.shapes import check_subscribable
from triplewire.matching.tables import OntologyClosure
from triplewire.model import ENTRIES, MATCHED_COLUMNS
from triplewire.model.clock import Clock, SystemClock
from triplewire.model.errors import QueryLimit
from triplewire.model.terms import XSD, literal, parse_literal
from triplewire.sparql import Conjunction, algebra, compile_subscription, explode, to_conjunction, to_sql
from triplewire.sparql.algebra import Apply, Const, Expression, Node, Operator, Pattern, Query, Var
from triplewire.sparql.construct import construct_to_select
from triplewire.sparql.dialects.duckdb import open_engine
from triplewire.sparql.entailment.ontologies import Ontology
from triplewire.sparql.entailment.rewriting import rewrite_query
from triplewire.sparql.queries import ensure_recursion_limit
from triplewire.sparql.serialization import expression_text, format_tree, operator_details, pattern_text
from triplewire.sparql.traversal import (
    bound_variables,
    child_operators,
    iterate_parts,
    mentioned_variables,
    pattern_variables,
)
from triplewire.storage.registry.ports import RegistryChange

EXPLAIN_SECONDS: Final = 10.0
"""The longest time for the explanation of one match. Each part of the query is a query of its own, of some 20 ms."""

EXPLAIN_MEMORY: Final = "512MB"
"""Memory of one explanation. Nothing is spilled to disk."""

EXPLAIN_EXAMPLES: Final = 3
"""Quads, or solutions that a filter removed, that a step of an explanation shows."""


@dataclass(frozen=True)
class ExplainStep:
    """One part of a query, and the number of solutions on the event after it."""

    kind: str
    """`pattern`, `filter`, or the name of an operator."""
    says: str
    solutions: int
    alone: int | None = None
    """For a pattern, the number of triples of the event that match it alone."""
    before: int | None = None
    """For a filter, the number of solutions before it."""
    found: tuple[str, ...] = ()
    """For a pattern, some quads in the solutions so far."""
    inferred: tuple[str, ...] = ()
    """For a pattern, some quads, or facts of the ontology, that entail its triple."""
    removed: tuple[str, ...] = ()
    """For a filter, the values in some solutions that it removed."""
    inside: tuple[ExplainStep, ...] = ()
    needed: bool = True
    """Whether the enclosing part has no solution without one of this part."""

    def failed(self) -> ExplainStep | None:
        """The first part without solutions, or None."""
        if self.solutions:
            return None
        reasons = (each.failed() for each in self.inside if each.needed)
        return next((each for each in reasons if each is not None), self)

    def value(self) -> dict[str, Any]:
        """The step as JSON, without fields that do not apply."""
        numbers = {"solutions": self.solutions, "alone": self.alone, "before": self.before}
        lists = {"found": self.found, "inferred": self.inferred, "removed": self.removed}
        return {
            "step": self.kind,
            "says": self.says,
            **{name: number for name, number in numbers.items() if number is not None},
            **{name: list(each) for name, each in lists.items() if each},
            **({"inside": [each.value() for each in self.inside]} if self.inside else {}),
        }

    def lines(self) -> Iterator[str]:
        yield f"{self.name}: {self._counts()}"
        for word, examples in (("found", self.found), ("inferred from", self.inferred), ("removed", self.removed)):
            yield from (f"    {word} {each}" for each in examples)

    @property
    def name(self) -> str:
        return f"{self.kind} {self.says}".rstrip()

    def _counts(self) -> str:
        if self.before is not None:
            return f"{self.solutions} of {_count_text(self.before, 'solution')}"
        alone = "" if self.alone is None else f"{_count_text(self.alone, 'triple')}, "
        return alone + _count_text(self.solutions, "solution")


@dataclass(frozen=True)
class EventExplanation:
    """Why an event matched, or the first part of the query that it failed."""

    root: ExplainStep

    @property
    def matched(self) -> bool:
        return self.root.solutions > 0

    def text(self) -> str:
        failed = self.root.failed()
        verdict = "matched" if failed is None else f"not matched: nothing is left after {failed.name}"
        return "\n".join([verdict, *format_tree(self.root, ExplainStep.lines, attrgetter("inside"))]) + "\n"

    def value(self) -> dict[str, Any]:
        """The explanation as JSON. `failed` is the first step without solutions, without its inner steps; null for a
        match."""
        failed = self.root.failed()
        reason = None if failed is None else {"step": failed.kind, "says": failed.says}
        return {"matched": self.matched, "failed": reason, "steps": self.root.value()}


def _count_text(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


_SCHEMA = pa.schema([ENTRIES.field(name) for name in MATCHED_COLUMNS])
_TABLES = (
    f"CREATE TEMP TABLE quads AS {to_sql(explode('entries'), 'duckdb')}",
    "CREATE TEMP VIEW events AS SELECT * FROM quads WHERE quad = 0",
    "CREATE TEMP TABLE constants AS SELECT CAST(1 AS BIGINT) AS subscription",
)
_COUNT = "n"

Solution = Mapping[str, str | None]


class EventProbe:
    """A database with one event, a row of an `ENTRIES` table, that is asked many queries. It belongs to one thread
    and must be closed. `ontologies` are the changes that loaded the current ontologies. Every query raises
    QueryLimit when all of them together took too long, or one took too much memory."""

    def __init__(
        self,
        entry: Mapping[str, Any],
        ontologies: Sequence[RegistryChange] = (),
        clock: Clock | None = None,
        seconds: float = EXPLAIN_SECONDS,
    ) -> None:
        self._clock = clock or SystemClock()
        self._deadline = self._clock.ticks() + seconds
        ensure_recursion_limit()
        self._duck = open_engine(EXPLAIN_MEMORY)
        closures = OntologyClosure(self._duck)
        for change in ontologies:
            closures.apply(change)
        closures.prepare()
        row = {name: entry[name] for name in MATCHED_COLUMNS}
        self._duck.register("entries", pa.Table.from_pylist([row], schema=_SCHEMA))
        for statement in _TABLES:
            self._duck.execute(statement)

    def __enter__(self) -> EventProbe:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._duck.close()

    def count(self, operator: Operator) -> int:
        """The number of its solutions on the event."""
        counted = algebra.Group(operator, (), ((_COUNT, algebra.Aggregate("count")),))
        ((term,),) = self._rows(algebra.Select(counted, (_COUNT,)))
        return int(parse_literal(term or "").lexical)

    def sample(self, operator: Operator, names: Sequence[str]) -> list[Solution]:
        """The values of these variables in a few distinct solutions, always the same ones."""
        few = algebra.Select(operator, tuple(names), distinct=True, limit=EXPLAIN_EXAMPLES)
        return [dict(zip(names, row, strict=True)) for row in self._rows(few)]

    def _rows(self, select: algebra.Select) -> list[tuple[str | None, ...]]:
        query = Query("select", select, select.projection)
        found = self._answer(to_sql(compile_subscription(query, solutions=True), "duckdb"))
        width = 1 + len(select.projection)
        terms = found[0][-1] if found else []
        return [tuple(terms[start + 1 : start + width]) for start in range(0, len(terms), width)]

    def _answer(self, sql: str) -> list[Any]:
        left = self._deadline - self._clock.ticks()
        if left <= 0:
            raise _limit_error()
        alarm = Timer(left, self._duck.interrupt)
        alarm.start()
        try:
            return self._duck.execute(sql).fetchall()
        except (duckdb.InterruptException, duckdb.OutOfMemoryException):
            raise _limit_error() from None
        finally:
            alarm.cancel()


def _limit_error() -> QueryLimit:
    return QueryLimit(
        f"the explanation took more than {EXPLAIN_SECONDS:g} s or {EXPLAIN_MEMORY}: "
        "some part of the query has very many solutions on the event"
    )


Texts = tuple[str, ...]

_FALSE = Const(literal("false", XSD + "boolean"))


def find_evidence(trial: EventProbe, pattern: Pattern, alone: Operator, joined: Operator) -> tuple[Texts, Texts]:
    """Some quads in the solutions of `joined` that match the pattern, and some that entail its triple. `alone` is
    the pattern with all its entailment alternatives."""
    stated, inferred = dict[str, None](), dict[str, None]()
    for way in _alternatives(alone):
        quads = [each for each in iterate_parts(way) if isinstance(each, Pattern)]
        names = sorted(pattern_variables(pattern).union(*map(pattern_variables, quads)))
        for solution in trial.sample(algebra.Join(joined, way), names):
            triple, reasons = _pattern_text(pattern, solution), [_pattern_text(each, solution) for each in quads]
            if reasons == [triple]:
                stated[triple] = None
            else:
                inferred[" and ".join(reasons) or f"the ontology, which says {triple}"] = None
    return _limit_examples(stated), _limit_examples(inferred)


def find_refused(
    trial: EventProbe, within: Callable[[Operator], Operator], reached: Operator, condition: Expression
) -> Texts:
    """The values of the condition's variables in some solutions for which it is false or an error."""
    names = sorted(mentioned_variables(condition) & bound_variables(reached))
    if not names:
        return ()
    holds = Apply("coalesce", (Apply("!", (Apply("!", (condition,)),)), _FALSE))
    solutions = trial.sample(within(algebra.Filter(reached, (Apply("!", (holds,)),))), names)
    return tuple(
        ", ".join(f"?{name} {'without a value' if term is None else f'= {term}'}" for name, term in each.items())
        for each in solutions
    )


def _limit_examples(texts: dict[str, None]) -> Texts:
    return tuple(islice(texts, EXPLAIN_EXAMPLES))


def _alternatives(operator: Operator) -> list[Operator]:
    match operator:
        case algebra.Select(inner):
            return _alternatives(inner)
        case algebra.Union(left, right):
            return [*_alternatives(left), *_alternatives(right)]
        case algebra.Graph(name, inner):
            return [algebra.Graph(name, each) for each in _alternatives(inner)]
    return [operator]


def _pattern_text(pattern: Pattern, solution: Solution) -> str:
    return " ".join(_term(node, solution) for node in (pattern.subject, pattern.predicate, pattern.object))


def _term(node: Node, solution: Solution) -> str:
    match node:
        case Const(term):
            return term
        case Var(name):
            return solution.get(name) or f"?{name}"
    raise TypeError(node)


Within: TypeAlias = Callable[[Operator], Operator]
"""Wraps an operator in the graph of the part that is explained."""

_NAMES = {
    algebra.Basic: "patterns",
    algebra.Filter: "filtered",
    algebra.LeftJoin: "optional",
    algebra.Reach: "path",
    algebra.Extend: "bind",
}
_NOTHING = Ontology()


def explain(
    query: Query,
    entry: Mapping[str, Any],
    *,
    ontology: Ontology = _NOTHING,
    ontologies: Sequence[RegistryChange] = (),
    clock: Clock | None = None,
) -> EventExplanation:
    """Explain an event, a row of an `ENTRIES` table. Entailed triples count; `ontologies` are the changes that loaded
    the current ontologies. The query has no parameters and includes the event selector of its subscription.

    The explanation says `matched` exactly if the subscription matches. Raises Unsupported for queries that are not
    allowed in subscriptions, QueryLimit if it takes too long.
    """
    check_subscribable(query)
    asked = construct_to_select(query) if query.form == "construct" else query
    flat = to_conjunction(asked)
    with EventProbe(entry, ontologies, clock) as trial:
        explaining = _Explainer(trial, ontology)
        if flat is None or flat.offset or flat.limit == 0:
            return EventExplanation(explaining.tree(asked.where, _here))
        return EventExplanation(explaining.conjunction(flat))


def _here(operator: Operator) -> Operator:
    return operator


@dataclass(frozen=True)
class _Explainer:
    trial: EventProbe
    ontology: Ontology

    def conjunction(self, query: Conjunction) -> ExplainStep:
        """Explain patterns, then filters."""
        joined: Operator = algebra.Basic()
        whole = reduce(algebra.Join, map(_in_its_graph, query.patterns), joined)
        steps = (*self._patterns(query.patterns, _here), *self._filters(whole, query.filters, _here))
        said = " ".join(f"?{name}" for name in query.projection)
        return ExplainStep(query.form, said, steps[-1].solutions if steps else 1, inside=steps)

    def tree(self, operator: Operator, within: Within, *, needed: bool = True) -> ExplainStep:
        steps = tuple(self._inside(operator, within))
        if isinstance(operator, algebra.Basic) and len(steps) == 1:
            return replace(steps[0], needed=needed)
        # Inner patterns and conditions are steps of their own.
        said = "" if isinstance(operator, algebra.Basic | algebra.Filter) else "; ".join(operator_details(operator))
        kind = _NAMES.get(type(operator), type(operator).__name__.lower())
        return ExplainStep(kind, said, self.trial.count(self._meant(within(operator))), inside=steps, needed=needed)

    def _inside(self, operator: Operator, within: Within) -> Iterator[ExplainStep]:
        match operator:
            case algebra.Basic(patterns):
                yield from self._patterns(patterns, within)
            case algebra.Filter(inner, conditions):
                yield self.tree(inner, within)
                yield from self._filters(inner, conditions, within)
            case algebra.LeftJoin(left, right) | algebra.Minus(left, right):
                yield self.tree(left, within)
                yield self.tree(right, within, needed=False)
            case algebra.Graph(name, inner):
                yield self.tree(inner, lambda each: within(algebra.Graph(name, each)))
            case _:
                needed = not isinstance(operator, algebra.Union)
                yield from (self.tree(each, within, needed=needed) for each in child_operators(operator).values())

    def _patterns(self, patterns: Sequence[Pattern], within: Within) -> Iterator[ExplainStep]:
        joined: Operator = algebra.Basic()
        for pattern in patterns:
            alone = self._meant(within(_in_its_graph(pattern)))
            joined = algebra.Join(joined, alone)
            yield self._pattern(pattern, alone, joined)

    def _pattern(self, pattern: Pattern, alone: Operator, joined: Operator) -> ExplainStep:
        solutions = self.trial.count(joined)
        stated, inferred = find_evidence(self.trial, pattern, alone, joined) if solutions else ((), ())
        count = self.trial.count(alone)
        return ExplainStep("pattern", pattern_text(pattern), solutions, alone=count, found=stated, inferred=inferred)

    def _meant(self, operator: Operator) -> Operator:
        """The operator with all entailment alternatives of its triples."""
        return rewrite_query(Query("ask", operator), self.ontology).where

    def _filters(self, inner: Operator, conditions: Sequence[Expression], within: Within) -> Iterator[ExplainStep]:
        def asked(operator: Operator) -> Operator:
            return self._meant(within(operator))

        before = self.trial.count(asked(inner)) if conditions else 0
        for number, condition in enumerate(conditions):
            reached = algebra.Filter(inner, tuple(conditions[:number]))
            passed = self.trial.count(asked(algebra.Filter(inner, tuple(conditions[: number + 1]))))
            removed = find_refused(self.trial, asked, reached, condition) if passed < before else ()
            yield ExplainStep("filter", expression_text(condition), passed, before=before, removed=removed)
            before = passed


def _in_its_graph(pattern: Pattern) -> Operator:
    plain = algebra.Basic((replace(pattern, graph=None),))
    return plain if pattern.graph is None else algebra.Graph(pattern.graph, plain)
