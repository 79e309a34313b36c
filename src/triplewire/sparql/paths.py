"""Property paths: translation of fixed-length paths into triple patterns, and evaluation of any path over triples in
memory.

Repeated and negated paths stay paths when they are translated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from functools import reduce
from itertools import pairwise

from triplewire.sparql import algebra
from triplewire.sparql.algebra import Apply, Const, Node, Operator, Path, Pattern, Var
from triplewire.sparql.statistics import OptimizerContext


def expand_paths(operator: Operator, planning: OptimizerContext) -> Operator:
    return translate_path(operator, planning.fresh) if isinstance(operator, algebra.Reach) else operator


def translate_path(reach: algebra.Reach, fresh: Callable[[], Var]) -> Operator:
    """Translate a path pattern; repeated paths and negated property sets stay paths."""
    subject, path, object_ = reach.subject, reach.path, reach.object
    match path:
        case algebra.Link(predicate):
            return algebra.Basic((Pattern(subject, predicate, object_),))
        case algebra.Inverse(inner):
            return translate_path(algebra.Reach(object_, inner, subject), fresh)
        case algebra.Chain(paths):
            nodes: list[Node] = [subject, *(fresh() for _ in paths[1:]), object_]
            steps = zip(paths, pairwise(nodes), strict=True)
            return reduce(
                algebra.Join, (translate_path(algebra.Reach(one, each, two), fresh) for each, (one, two) in steps)
            )
        case algebra.Either(paths):
            return _balanced_union([translate_path(algebra.Reach(subject, each, object_), fresh) for each in paths])
    return reach


def translate_negated(reach: algebra.Reach, path: algebra.Negated, fresh: Callable[[], Var]) -> Operator:
    """Translate a negated property set into patterns with any predicate, forward, backward or both, and filters."""

    def exclude(subject: Node, excluded: tuple[Const, ...], object_: Node) -> Operator:
        step = fresh()
        return algebra.Filter(algebra.Basic((Pattern(subject, step, object_),)), (Apply("not in", (step, *excluded)),))

    ways = [] if path.forward is None else [exclude(reach.subject, path.forward, reach.object)]
    ways += [] if path.backward is None else [exclude(reach.object, path.backward, reach.subject)]
    return reduce(algebra.Union, ways)


def _balanced_union(parts: list[Operator]) -> Operator:
    """Combine as a balanced tree, because a list may be long."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return algebra.Union(_balanced_union(parts[:half]), _balanced_union(parts[half:]))


NodePairs = frozenset[tuple[str, str]]
Triple = tuple[str, str, str]


def evaluate_path(path: Path, triples: Collection[Triple]) -> NodePairs:
    """Return the pairs of nodes that a path connects in these triples. A zero-length path connects each node to
    itself."""
    match path:
        case algebra.Link(predicate):
            return frozenset((start, end) for start, each, end in triples if each == predicate.term)
        case algebra.Inverse(inner):
            return _reverse(evaluate_path(inner, triples))
        case algebra.Chain(paths):
            return reduce(_compose, (evaluate_path(each, triples) for each in paths))
        case algebra.Either(paths):
            return frozenset().union(*(evaluate_path(each, triples) for each in paths))
        case algebra.Negated(forward, backward):
            ahead = frozenset() if forward is None else _all_except(triples, {each.term for each in forward})
            back = frozenset() if backward is None else _all_except(triples, {each.term for each in backward})
            return ahead | _reverse(back)
        case algebra.Repeat(inner, least, once):
            steps = evaluate_path(inner, triples)
            none = frozenset((node, node) for start, _, end in triples for node in (start, end)) if least == 0 else ()
            return (steps if once else _transitive_closure(steps)) | frozenset(none)


def _reverse(pairs: Iterable[tuple[str, str]]) -> NodePairs:
    return frozenset((end, start) for start, end in pairs)


def _all_except(triples: Iterable[Triple], excluded: Collection[str]) -> NodePairs:
    return frozenset((start, end) for start, predicate, end in triples if predicate not in excluded)


def _compose(first: NodePairs, second: NodePairs) -> NodePairs:
    ends: defaultdict[str, list[str]] = defaultdict(list)
    for start, end in second:
        ends[start].append(end)
    return frozenset((start, end) for start, middle in first for end in ends.get(middle, ()))


def _transitive_closure(steps: NodePairs) -> NodePairs:
    found = new = steps
    while new:
        new = _compose(new, steps) - found
        found |= new
    return found
