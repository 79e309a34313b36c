"""Filters move towards the patterns that bind what they use, so that less is joined."""

from __future__ import annotations

from triplewire.sparql.algebra import (
    VOLATILE,
    Apply,
    Exists,
    Expression,
    Extend,
    Filter,
    Graph,
    Join,
    LeftJoin,
    Minus,
    Operator,
    Union,
    Var,
    Window,
)
from triplewire.sparql.rules.plannings import Planning
from triplewire.sparql.variables import bound_by, mentioned, surely_bound_by


def push_filters(operator: Operator, _: Planning) -> Operator:
    """Each part of a conjunction goes as far down as it may."""
    if not isinstance(operator, Filter):
        return operator
    inner, kept = operator.inner, list[Expression]()
    for condition in _parts(operator.conditions):
        pushed = _pushed(inner, condition) if is_plain(condition) else None
        inner, kept = (inner, [*kept, condition]) if pushed is None else (pushed, kept)
    if isinstance(inner, Filter):
        return Filter(inner.inner, (*inner.conditions, *kept))
    return Filter(inner, tuple(kept)) if kept else inner


def _parts(conditions: tuple[Expression, ...]) -> list[Expression]:
    found: list[Expression] = []
    for each in conditions:
        found.extend(_parts(each.args) if isinstance(each, Apply) and each.op == "&&" else [each])
    return found


def is_plain(expression: Expression) -> bool:
    """Does its truth follow from the values of its variables alone?"""
    if isinstance(expression, Apply):
        return expression.op not in VOLATILE and all(is_plain(each) for each in expression.args)
    return not isinstance(expression, Exists)


def _pushed(operator: Operator, condition: Expression) -> Operator | None:
    """The operator with the condition inside; None if it must stay outside."""
    used = mentioned(condition)
    if not used <= bound_by(operator):
        # it uses what only a solution around EXISTS has
        return None
    match operator:
        case Join(left, right) if used <= surely_bound_by(left) or not used & bound_by(right):
            return Join(_into(left, condition), right)
        case Join(left, right) if used <= surely_bound_by(right) or not used & bound_by(left):
            return Join(left, _into(right, condition))
        case LeftJoin(left, right, conditions) if used <= surely_bound_by(left) or not used & bound_by(right):
            return LeftJoin(_into(left, condition), right, conditions)
        case Minus(left, right):
            return Minus(_into(left, condition), right)
        case Union(left, right):
            return Union(_into(left, condition), _into(right, condition))
        case Extend(inner, name, expression) if name not in used:
            return Extend(_into(inner, condition), name, expression)
        case Graph(name, inner) if not (isinstance(name, Var) and name.name in used):
            return Graph(name, _into(inner, condition))
        case Window(window, inner):
            return Window(window, _into(inner, condition))
    return None


def _into(operator: Operator, condition: Expression) -> Operator:
    pushed = _pushed(operator, condition)
    if pushed is not None:
        return pushed
    if isinstance(operator, Filter):
        return Filter(operator.inner, (*operator.conditions, condition))
    return Filter(operator, (condition,))
