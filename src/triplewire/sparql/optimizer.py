"""The optimizer: a tuple of rewriting rules, each applied to the whole tree in turn.

Paths of fixed length become patterns; filters move towards the patterns that bind their variables; joined basic graph
patterns are merged; `FILTER(?x = <iri>)` puts the IRI into the patterns, where it is looked up instead of compared
(the variable keeps its value by a join, not by BIND, because inside EXISTS the outer solution may have another one);
patterns are ordered from the rarest on, by statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from triplewire.model.terms import is_iri
from triplewire.sparql import algebra
from triplewire.sparql.algebra import Apply, Const, Expression, Node, Operator, Pattern, Query, Var
from triplewire.sparql.paths import expand_paths
from triplewire.sparql.statistics import OptimizerContext, Statistics
from triplewire.sparql.traversal import (
    bound_variables,
    certain_variables,
    conjuncts,
    mentioned_variables,
    pattern_variables,
    required_constant,
    substitute_constants,
    transform_operators,
)


def push_filters(operator: Operator, _: OptimizerContext) -> Operator:
    """Push each part of a conjunction down as far as possible."""
    if not isinstance(operator, algebra.Filter):
        return operator
    inner, kept = operator.inner, list[Expression]()
    for condition in conjuncts(*operator.conditions):
        pushed = _push(inner, condition) if is_plain(condition) else None
        inner, kept = (inner, [*kept, condition]) if pushed is None else (pushed, kept)
    if isinstance(inner, algebra.Filter):
        return algebra.Filter(inner.inner, (*inner.conditions, *kept))
    return algebra.Filter(inner, tuple(kept)) if kept else inner


def is_plain(expression: Expression) -> bool:
    """Tell whether an expression depends on the values of its variables alone."""
    if isinstance(expression, Apply):
        return expression.op not in algebra.VOLATILE and all(is_plain(each) for each in expression.args)
    return not isinstance(expression, algebra.Exists)


def _push(operator: Operator, condition: Expression) -> Operator | None:
    """Return the operator with the condition inside; None if it must stay outside."""
    used = mentioned_variables(condition)
    if not used <= bound_variables(operator):
        # it uses a variable that only the solution around EXISTS binds
        return None
    match operator:
        case algebra.Join(left, right) if used <= certain_variables(left) or not used & bound_variables(right):
            return algebra.Join(_push_into(left, condition), right)
        case algebra.Join(left, right) if used <= certain_variables(right) or not used & bound_variables(left):
            return algebra.Join(left, _push_into(right, condition))
        case algebra.LeftJoin(left, right, conditions) if used <= certain_variables(left) or not used & bound_variables(
            right
        ):
            return algebra.LeftJoin(_push_into(left, condition), right, conditions)
        case algebra.Minus(left, right):
            return algebra.Minus(_push_into(left, condition), right)
        case algebra.Union(left, right):
            return algebra.Union(_push_into(left, condition), _push_into(right, condition))
        case algebra.Extend(inner, name, expression) if name not in used:
            return algebra.Extend(_push_into(inner, condition), name, expression)
        case algebra.Graph(name, inner) if not (isinstance(name, Var) and name.name in used):
            return algebra.Graph(name, _push_into(inner, condition))
        case algebra.Window(window, inner):
            return algebra.Window(window, _push_into(inner, condition))
    return None


def _push_into(operator: Operator, condition: Expression) -> Operator:
    pushed = _push(operator, condition)
    if pushed is not None:
        return pushed
    if isinstance(operator, algebra.Filter):
        return algebra.Filter(operator.inner, (*operator.conditions, condition))
    return algebra.Filter(operator, (condition,))


def merge_patterns(operator: Operator, _: OptimizerContext) -> Operator:
    if not isinstance(operator, algebra.Join):
        return operator
    match operator.left, operator.right:
        case algebra.Basic(left), algebra.Basic(right):
            return algebra.Basic((*left, *right))
        case algebra.Join(other, algebra.Basic(left)), algebra.Basic(right):
            return algebra.Join(other, algebra.Basic((*left, *right)))
        case algebra.Basic(()), other:
            return other
        case other, algebra.Basic(()):
            return other
        case (algebra.Filter(inner, conditions), other) if _movable(inner, conditions):
            return algebra.Filter(merge_patterns(algebra.Join(inner, other), _), conditions)
        case (other, algebra.Filter(inner, conditions)) if _movable(inner, conditions):
            return algebra.Filter(merge_patterns(algebra.Join(other, inner), _), conditions)
    return operator


def _movable(inner: Operator, conditions: tuple[object, ...]) -> bool:
    """Tell whether a filter may move around the join: its own group must bind all that it uses."""
    return all(is_plain(each) and mentioned_variables(each) <= certain_variables(inner) for each in conditions)  # type: ignore[arg-type]


def put_constants(operator: Operator, _: OptimizerContext) -> Operator:
    if not isinstance(operator, algebra.Filter) or not isinstance(operator.inner, algebra.Basic):
        return operator
    basic, kept, known = operator.inner, list[Expression](), dict[str, Const]()
    for condition in operator.conditions:
        found = required_constant(condition)
        if found is None or not is_iri(found[1].term) or found[0] in known or not _accepts_constant(basic, *found):
            kept.append(condition)
        else:
            known[found[0]] = found[1]
    if not known:
        return operator
    values = algebra.Values(tuple(known), (tuple(each.term for each in known.values()),))
    inner = algebra.Join(algebra.Basic(tuple(substitute_constants(each, known) for each in basic.patterns)), values)
    return algebra.Filter(inner, tuple(kept)) if kept else inner


def _accepts_constant(basic: algebra.Basic, name: str, constant: Const) -> bool:
    """Tell whether the pattern has the variable, and allows the constant: a header predicate never matches a
    variable."""
    named = Var(name)
    made = constant.term in algebra.HEADER_PREDICATES and any(each.predicate == named for each in basic.patterns)
    return name in bound_variables(basic) and not made


_APART = 1e12
"""The cost of a product over that of a join."""


def order_patterns(operator: Operator, planning: OptimizerContext) -> Operator:
    if isinstance(operator, algebra.Window):
        return replace(operator, inner=transform_operators(operator.inner, _unknown))
    if not isinstance(operator, algebra.Basic) or len(operator.patterns) < 2:
        return operator
    left, ordered, known = list(operator.patterns), list[Pattern](), set[str]()
    while left:
        best = min(left, key=lambda each: _cost(each, known, planning.statistics))
        left.remove(best)
        ordered.append(best)
        known |= pattern_variables(best)
    return algebra.Basic(tuple(ordered))


def _unknown(operator: Operator) -> Operator:
    """Order patterns of a window, of which there are no statistics."""
    return order_patterns(operator, OptimizerContext())


def _cost(pattern: Pattern, known: set[str], statistics: Statistics) -> float:
    """Estimate how many triples each solution so far meets."""
    predicate = pattern.predicate.term if isinstance(pattern.predicate, Const) else None
    subject, object_ = _is_known(pattern.subject, known), _is_known(pattern.object, known)
    found = statistics.matches(predicate, subject=subject, object_=object_)
    named = sum(isinstance(each, Const) for each in pattern.triple)
    apart = _APART if known and known.isdisjoint(pattern_variables(pattern)) and named < 3 else 0.0
    # ties are broken by the number of constants
    return apart + found + (3 - named) * 1e-6


def _is_known(node: Node, known: set[str]) -> bool:
    return not isinstance(node, Var) or node.name in known


Rule: TypeAlias = Callable[[Operator, OptimizerContext], Operator]
"""A rewriting of one operator whose children are rewritten already."""

RULES: tuple[Rule, ...] = (expand_paths, push_filters, merge_patterns, put_constants, order_patterns)


def optimize_query(query: Query, statistics: Statistics) -> Query:
    """Return a query with the same answers that is cheaper to evaluate."""
    planning = OptimizerContext(statistics)
    return replace(query, where=reduce(lambda where, rule: apply_rule(rule, where, planning), RULES, query.where))


def apply_rule(rule: Rule, operator: Operator, planning: OptimizerContext) -> Operator:
    """Apply one rule to the whole tree."""
    return transform_operators(operator, lambda each: rule(each, planning))
