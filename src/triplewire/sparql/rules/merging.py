"""Basic graph patterns that are joined become one, in which the order of all patterns can be chosen."""

from __future__ import annotations

from triplewire.sparql.algebra import Basic, Filter, Join, Operator
from triplewire.sparql.rules.filters import is_plain
from triplewire.sparql.rules.plannings import Planning
from triplewire.sparql.variables import mentioned, surely_bound_by


def merge_patterns(operator: Operator, _: Planning) -> Operator:
    if not isinstance(operator, Join):
        return operator
    match operator.left, operator.right:
        case Basic(left), Basic(right):
            return Basic((*left, *right))
        case Join(other, Basic(left)), Basic(right):
            return Join(other, Basic((*left, *right)))
        case Basic(()), other:
            return other
        case other, Basic(()):
            return other
        case (Filter(inner, conditions), other) if _movable(inner, conditions):
            return Filter(merge_patterns(Join(inner, other), _), conditions)
        case (other, Filter(inner, conditions)) if _movable(inner, conditions):
            return Filter(merge_patterns(Join(other, inner), _), conditions)
    return operator


def _movable(inner: Operator, conditions: tuple[object, ...]) -> bool:
    """A filter sees the same around the join as inside of it if its own group binds all that it uses."""
    return all(is_plain(each) and mentioned(each) <= surely_bound_by(inner) for each in conditions)  # type: ignore[arg-type]
