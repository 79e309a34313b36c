"""Paths of fixed length become patterns, so that they are joined like any other."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise

from triplewire.sparql.algebra import (
    Basic,
    Chain,
    Either,
    Inverse,
    Join,
    Link,
    Node,
    Operator,
    Pattern,
    Reach,
    Union,
    Var,
)
from triplewire.sparql.rules.plannings import Planning


def expand_paths(operator: Operator, planning: Planning) -> Operator:
    return expanded(operator, planning.fresh) if isinstance(operator, Reach) else operator


def expanded(reach: Reach, fresh: Callable[[], Var]) -> Operator:
    """What repeats, and what is negated, stays a path."""
    subject, path, object_ = reach.subject, reach.path, reach.object
    match path:
        case Link(predicate):
            return Basic((Pattern(subject, predicate, object_),))
        case Inverse(inner):
            return expanded(Reach(object_, inner, subject), fresh)
        case Chain(paths):
            nodes: list[Node] = [subject, *(fresh() for _ in paths[1:]), object_]
            steps = zip(paths, pairwise(nodes), strict=True)
            return reduce(Join, (expanded(Reach(one, each, two), fresh) for each, (one, two) in steps))
        case Either(paths):
            return _any([expanded(Reach(subject, each, object_), fresh) for each in paths])
    return reach


def _any(parts: list[Operator]) -> Operator:
    """As a balanced tree, because a list may be long."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return Union(_any(parts[:half]), _any(parts[half:]))
