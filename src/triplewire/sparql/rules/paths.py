"""Paths of fixed length become patterns, so that they are joined like any other."""

from __future__ import annotations

from hashlib import sha256
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
    Path,
    Pattern,
    Reach,
    Union,
    Var,
)
from triplewire.sparql.statistics import Statistics


def expand_paths(operator: Operator, _: Statistics) -> Operator:
    return expanded(operator) if isinstance(operator, Reach) else operator


def expanded(reach: Reach) -> Operator:
    """The nodes between the steps are variables that are named by where they stand, so that no other has the name."""
    return _expanded(reach.subject, reach.path, reach.object, f".{_name(reach.subject)}{_digest(reach)}")


def _expanded(subject: Node, path: Path, object_: Node, trail: str) -> Operator:
    match path:
        case Link(predicate):
            return Basic((Pattern(subject, predicate, object_),))
        case Inverse(inner):
            return _expanded(object_, inner, subject, trail)
        case Chain(paths):
            return _chained(subject, paths, object_, trail)
        case Either(paths):
            return _any([_expanded(subject, each, object_, f"{trail}|{index}") for index, each in enumerate(paths)])
    return Reach(subject, path, object_)


def _chained(subject: Node, paths: tuple[Path, ...], object_: Node, trail: str) -> Operator:
    between: list[Node] = [Var(f"{trail}/{index}") for index in range(1, len(paths))]
    ends = pairwise([subject, *between, object_])
    parts = [
        _expanded(one, path, two, f"{trail}/{index}")
        for index, (path, (one, two)) in enumerate(zip(paths, ends, strict=True))
    ]
    result = parts[0]
    for part in parts[1:]:
        result = Join(result, part)
    return result


def _any(parts: list[Operator]) -> Operator:
    """As a balanced tree, because a list may be long."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return Union(_any(parts[:half]), _any(parts[half:]))


def _name(node: Node) -> str:
    return node.name if isinstance(node, Var) else ""


def _digest(reach: Reach) -> str:
    return sha256(repr(reach).encode()).hexdigest()[:8]
