"""Walks: the pairs of nodes that a path connects in triples that are at hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import reduce

from triplewire.sparql.algebra import Chain, Either, Inverse, Link, Negated, Path, Repeat

Pairs = frozenset[tuple[str, str]]
Triple = tuple[str, str, str]


def walked(path: Path, triples: Collection[Triple]) -> Pairs:
    """Each pair once; a path of no length leads from each node of the triples to itself."""
    match path:
        case Link(predicate):
            return frozenset((start, end) for start, each, end in triples if each == predicate.term)
        case Inverse(inner):
            return _turned(walked(inner, triples))
        case Chain(paths):
            return reduce(_composed, (walked(each, triples) for each in paths))
        case Either(paths):
            return frozenset().union(*(walked(each, triples) for each in paths))
        case Negated(forward, backward):
            ahead = frozenset() if forward is None else _but(triples, {each.term for each in forward})
            back = frozenset() if backward is None else _but(triples, {each.term for each in backward})
            return ahead | _turned(back)
        case Repeat(inner, least, once):
            steps = walked(inner, triples)
            none = frozenset((node, node) for start, _, end in triples for node in (start, end)) if least == 0 else ()
            return (steps if once else _closed(steps)) | frozenset(none)


def _turned(pairs: Iterable[tuple[str, str]]) -> Pairs:
    return frozenset((end, start) for start, end in pairs)


def _but(triples: Iterable[Triple], excluded: Collection[str]) -> Pairs:
    return frozenset((start, end) for start, predicate, end in triples if predicate not in excluded)


def _composed(first: Pairs, second: Pairs) -> Pairs:
    ends: defaultdict[str, list[str]] = defaultdict(list)
    for start, end in second:
        ends[start].append(end)
    return frozenset((start, end) for start, middle in first for end in ends.get(middle, ()))


def _closed(steps: Pairs) -> Pairs:
    found = new = steps
    while new:
        new = _composed(new, steps) - found
        found |= new
    return found
