"""Patterns are joined from the rarest to those that share a variable with what is there, by statistics."""

from __future__ import annotations

from dataclasses import replace

from triplewire.sparql.algebra import Basic, Const, Node, Operator, Pattern, Var, Window
from triplewire.sparql.rewriting import rewritten
from triplewire.sparql.rules.plannings import Planning
from triplewire.sparql.statistics import Statistics
from triplewire.sparql.variables import of_pattern

_APART = 1e12
"""What a product costs more than a join."""


def order_patterns(operator: Operator, planning: Planning) -> Operator:
    if isinstance(operator, Window):
        return replace(operator, inner=rewritten(operator.inner, _unknown))
    if not isinstance(operator, Basic) or len(operator.patterns) < 2:
        return operator
    left, ordered, known = list(operator.patterns), list[Pattern](), set[str]()
    while left:
        best = min(left, key=lambda each: _cost(each, known, planning.statistics))
        left.remove(best)
        ordered.append(best)
        known |= of_pattern(best)
    return Basic(tuple(ordered))


def _unknown(operator: Operator) -> Operator:
    """In a window nothing is known of the data."""
    return order_patterns(operator, Planning())


def _cost(pattern: Pattern, known: set[str], statistics: Statistics) -> float:
    """About how many triples each solution so far meets."""
    predicate = pattern.predicate.term if isinstance(pattern.predicate, Const) else None
    subject, object_ = _known(pattern.subject, known), _known(pattern.object, known)
    found = statistics.matches(predicate, subject=subject, object_=object_)
    named = sum(isinstance(each, Const) for each in (pattern.subject, pattern.predicate, pattern.object))
    apart = _APART if known and known.isdisjoint(of_pattern(pattern)) and named < 3 else 0.0
    # where nothing tells them apart, what names more comes first
    return apart + found + (3 - named) * 1e-6


def _known(node: Node, known: set[str]) -> bool:
    return not isinstance(node, Var) or node.name in known
