"""Explanations: which part of a query made an event match, or which one it failed.

Each part of the query is asked of the event by itself. What is only patterns and filters is told as it was written,
one
after the other; anything else operator by operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias

from triplewire.matching.evidence import found, refused
from triplewire.matching.steps import Explanation, Step
from triplewire.matching.trials import Trial
from triplewire.matching.wholes import check
from triplewire.model.clock import Clock
from triplewire.sparql import Conjunction, Expression, Pattern, Query, to_conjunction
from triplewire.sparql.algebra import Basic, Extend, Filter, Graph, Join, LeftJoin, Minus, Operator, Reach, Union
from triplewire.sparql.construct import construct_to_select
from triplewire.sparql.entailment.ontologies import Ontology
from triplewire.sparql.entailment.rewriting import rewrite_query
from triplewire.sparql.serialization import child_operators, expression_text, operator_details, pattern_text
from triplewire.storage.registry.ports import RegistryChange

Within: TypeAlias = Callable[[Operator], Operator]
"""Puts an operator where the one that is explained stands: into its graph."""

_NAMES = {Basic: "patterns", Filter: "filtered", LeftJoin: "optional", Reach: "path", Extend: "bind"}
_NOTHING = Ontology()


def explain(
    query: Query,
    entry: Mapping[str, Any],
    *,
    ontology: Ontology = _NOTHING,
    ontologies: Sequence[RegistryChange] = (),
    clock: Clock | None = None,
) -> Explanation:
    """What becomes of an event, a row of an `ENTRIES` table. What follows from it by the ontology counts; `ontologies`
    are changes that load what ontological operators go by.

    The query has no parameters, and all that its subscription asks for: a narrowing is a part of it. The explanation
    says `matched` exactly if the subscription matches. Raises Unsupported for what no subscription may ask, QueryLimit
    where it takes too long.
    """
    check(query)
    asked = construct_to_select(query) if query.form == "construct" else query
    flat = to_conjunction(asked)
    with Trial(entry, ontologies, clock) as trial:
        explaining = _Explaining(trial, ontology)
        if flat is None or flat.offset or flat.limit == 0:
            return Explanation(explaining.tree(asked.where, _here))
        return Explanation(explaining.conjunction(flat))


def _here(operator: Operator) -> Operator:
    return operator


@dataclass(frozen=True)
class _Explaining:
    trial: Trial
    ontology: Ontology

    def conjunction(self, query: Conjunction) -> Step:
        """Its patterns, then its filters."""
        joined: Operator = Basic()
        whole = reduce(Join, map(_placed, query.patterns), joined)
        steps = (*self._patterns(query.patterns, _here), *self._filters(whole, query.filters, _here))
        said = " ".join(f"?{name}" for name in query.projection)
        return Step(query.form, said, steps[-1].solutions if steps else 1, inside=steps)

    def tree(self, operator: Operator, within: Within, *, needed: bool = True) -> Step:
        steps = tuple(self._inside(operator, within))
        if isinstance(operator, Basic) and len(steps) == 1:
            return replace(steps[0], needed=needed)
        # Their patterns and conditions are steps of their own.
        said = "" if isinstance(operator, Basic | Filter) else "; ".join(operator_details(operator))
        kind = _NAMES.get(type(operator), type(operator).__name__.lower())
        return Step(kind, said, self.trial.count(self._meant(within(operator))), inside=steps, needed=needed)

    def _inside(self, operator: Operator, within: Within) -> Iterator[Step]:
        match operator:
            case Basic(patterns):
                yield from self._patterns(patterns, within)
            case Filter(inner, conditions):
                yield self.tree(inner, within)
                yield from self._filters(inner, conditions, within)
            case LeftJoin(left, right) | Minus(left, right):
                yield self.tree(left, within)
                yield self.tree(right, within, needed=False)
            case Graph(name, inner):
                yield self.tree(inner, lambda each: within(Graph(name, each)))
            case _:
                needed = not isinstance(operator, Union)
                yield from (self.tree(each, within, needed=needed) for each in child_operators(operator))

    def _patterns(self, patterns: Sequence[Pattern], within: Within) -> Iterator[Step]:
        joined: Operator = Basic()
        for pattern in patterns:
            alone = self._meant(within(_placed(pattern)))
            joined = Join(joined, alone)
            yield self._pattern(pattern, alone, joined)

    def _pattern(self, pattern: Pattern, alone: Operator, joined: Operator) -> Step:
        solutions = self.trial.count(joined)
        stated, inferred = found(self.trial, pattern, alone, joined) if solutions else ((), ())
        count = self.trial.count(alone)
        return Step("pattern", pattern_text(pattern), solutions, alone=count, found=stated, inferred=inferred)

    def _meant(self, operator: Operator) -> Operator:
        """With all ways in which its triples may be entailed."""
        return rewrite_query(Query("ask", operator), self.ontology).where

    def _filters(self, inner: Operator, conditions: Sequence[Expression], within: Within) -> Iterator[Step]:
        def asked(operator: Operator) -> Operator:
            return self._meant(within(operator))

        before = self.trial.count(asked(inner)) if conditions else 0
        for number, condition in enumerate(conditions):
            reached = Filter(inner, tuple(conditions[:number]))
            passed = self.trial.count(asked(Filter(inner, tuple(conditions[: number + 1]))))
            removed = refused(self.trial, asked, reached, condition) if passed < before else ()
            yield Step("filter", expression_text(condition), passed, before=before, removed=removed)
            before = passed


def _placed(pattern: Pattern) -> Operator:
    plain = Basic((replace(pattern, graph=None),))
    return plain if pattern.graph is None else Graph(pattern.graph, plain)
