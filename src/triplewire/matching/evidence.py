"""Evidence: quads that match a pattern, or from which its triple follows, and values that a filter refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from triplewire.config import limits
from triplewire.matching.trials import Solution, Trial
from triplewire.model.terms import XSD, literal
from triplewire.sparql import Apply, Const, Expression, Node, Pattern, Var
from triplewire.sparql.algebra import Filter, Graph, Join, Operator, Select, Union
from triplewire.sparql.traversal import bound_variables, iterate_parts, mentioned_variables, pattern_variables

Texts = tuple[str, ...]

_FALSE = Const(literal("false", XSD + "boolean"))


def found(trial: Trial, pattern: Pattern, alone: Operator, joined: Operator) -> tuple[Texts, Texts]:
    """Some quads of the solutions of `joined` that are the pattern's triple, and some from which it follows. `alone`
    is the pattern with all ways to entail it."""
    stated, inferred = dict[str, None](), dict[str, None]()
    for way in _ways(alone):
        quads = [each for each in iterate_parts(way) if isinstance(each, Pattern)]
        names = sorted(pattern_variables(pattern).union(*map(pattern_variables, quads)))
        for solution in trial.some(Join(joined, way), names):
            triple, reasons = _filled(pattern, solution), [_filled(each, solution) for each in quads]
            if reasons == [triple]:
                stated[triple] = None
            else:
                inferred[" and ".join(reasons) or f"the ontology, which says {triple}"] = None
    return _few(stated), _few(inferred)


def refused(trial: Trial, within: Callable[[Operator], Operator], reached: Operator, condition: Expression) -> Texts:
    """What the condition saw in some solutions of which it is false or an error."""
    names = sorted(mentioned_variables(condition) & bound_variables(reached))
    if not names:
        return ()
    holds = Apply("coalesce", (Apply("!", (Apply("!", (condition,)),)), _FALSE))
    solutions = trial.some(within(Filter(reached, (Apply("!", (holds,)),))), names)
    return tuple(", ".join(f"?{name} {_seen(term)}" for name, term in each.items()) for each in solutions)


def _seen(term: str | None) -> str:
    return "without a value" if term is None else f"= {term}"


def _few(texts: dict[str, None]) -> Texts:
    return tuple(islice(texts, limits.EXPLAIN_EXAMPLES))


def _ways(operator: Operator) -> list[Operator]:
    match operator:
        case Select(inner):
            return _ways(inner)
        case Union(left, right):
            return [*_ways(left), *_ways(right)]
        case Graph(name, inner):
            return [Graph(name, each) for each in _ways(inner)]
    return [operator]


def _filled(pattern: Pattern, solution: Solution) -> str:
    return " ".join(_term(node, solution) for node in (pattern.subject, pattern.predicate, pattern.object))


def _term(node: Node, solution: Solution) -> str:
    match node:
        case Const(term):
            return term
        case Var(name):
            return solution.get(name) or f"?{name}"
    raise TypeError(node)
