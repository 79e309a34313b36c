"""Variables: which ones an operator or expression mentions, and which ones it binds."""

from __future__ import annotations

from functools import lru_cache

from triplewire.sparql.algebra import (
    Aggregate,
    Apply,
    Bag,
    Basic,
    Exists,
    Expression,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Operator,
    Pattern,
    Reach,
    Select,
    Service,
    Union,
    Values,
    Var,
    Window,
)

Names = frozenset[str]
_NONE: Names = frozenset()


@lru_cache(maxsize=4096)
def mentioned(part: Operator | Expression | Aggregate) -> Names:
    """Every variable that stands anywhere in it, visible from outside or not."""
    match part:
        case Var(name):
            return frozenset({name})
        case Apply(_, args):
            return _all(*args)
        case Exists(inner) | Window(_, inner):
            return mentioned(inner)
        case Aggregate(argument=argument):
            return _NONE if argument is None else mentioned(argument)
        case Join(left, right) | Union(left, right) | Minus(left, right):
            return _all(left, right)
        case LeftJoin(left, right, conditions):
            return _all(left, right, *conditions)
        case Filter(inner, conditions):
            return _all(inner, *conditions)
        case Extend(inner, name, expression):
            return _all(inner, expression) | {name}
        case Graph(name, inner):
            return _names(name) | mentioned(inner)
        case Group(inner, keys, aggregates):
            named = frozenset(name for name, _ in (*keys, *aggregates))
            return _all(inner, *(each for _, each in keys), *(each for _, each in aggregates)) | named
        case Bag(member=member, elements=elements):
            return _all(*elements) - {member}
        case Select(inner, projection, order=order):
            return _all(inner, *(each.expression for each in order)) | frozenset(projection)
        case Basic() | Reach() | Values() | Service():
            return bound_by(part)
    return _NONE


@lru_cache(maxsize=4096)
def bound_by(operator: Operator) -> Names:
    """The variables that its solutions may bind."""
    match operator:
        case Basic(patterns):
            return frozenset().union(*(of_pattern(each) for each in patterns))
        case Reach(subject, _, object_, graph):
            return _names(subject, object_, graph)
        case Join(left, right) | Union(left, right) | LeftJoin(left, right):
            return bound_by(left) | bound_by(right)
        case Minus(left, _):
            return bound_by(left)
        case Filter(inner) | Window(_, inner):
            return bound_by(inner)
        case Extend(inner, name, _):
            return bound_by(inner) | {name}
        case Graph(name, inner):
            return _names(name) | bound_by(inner)
        case Values(names, _) | Service(names=names):
            return frozenset(names)
        case Group(_, keys, aggregates):
            return frozenset(name for name, _ in (*keys, *aggregates))
        case Select(_, projection):
            return frozenset(projection)
        case Bag():
            return _NONE
    raise TypeError(operator)


@lru_cache(maxsize=4096)
def surely_bound_by(operator: Operator) -> Names:
    """The variables that each of its solutions binds."""
    match operator:
        case Basic() | Reach():
            return bound_by(operator)
        case Join(left, right):
            return surely_bound_by(left) | surely_bound_by(right)
        case Union(left, right):
            return surely_bound_by(left) & surely_bound_by(right)
        case LeftJoin(left, _) | Minus(left, _):
            return surely_bound_by(left)
        case Filter(inner) | Extend(inner) | Window(_, inner):
            return surely_bound_by(inner)
        case Graph(name, inner):
            return _names(name) | surely_bound_by(inner)
        case Values(names, rows):
            return frozenset(name for place, name in enumerate(names) if all(row[place] is not None for row in rows))
        case Select(inner, projection):
            return surely_bound_by(inner) & frozenset(projection)
    return _NONE


def of_pattern(pattern: Pattern) -> Names:
    return _names(pattern.subject, pattern.predicate, pattern.object, pattern.graph)


def _names(*nodes: Node | None) -> Names:
    return frozenset(node.name for node in nodes if isinstance(node, Var))


def _all(*parts: Operator | Expression | Aggregate) -> Names:
    return frozenset().union(*(mentioned(each) for each in parts))
