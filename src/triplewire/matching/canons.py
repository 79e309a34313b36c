"""Canons: queries that mean the same, up to the order of patterns and the names of variables, written in one way.

Subscriptions that ask the same then have the same shape and constants, and are evaluated once. Constants take no
part
in the order, so that what differs in constants alone still has one shape. Where a query is so symmetric that the
order
of its text decides after all, two that mean the same may stay apart; they are never mixed up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from triplewire.matching.renames import renamed
from triplewire.sparql import (
    Apply,
    Conjunction,
    Const,
    Expression,
    Node,
    Pattern,
    Query,
    Var,
    family_of,
    to_conjunction,
)
from triplewire.sparql.algebra import Basic, Filter, Operator, Select
from triplewire.sparql.traversal import iterate_parts, transform_operators

_COMPILED = ("regex", "replace")
_MANY = 32
"""Patterns above which ties are left to the text: telling them apart takes the cube of their number."""

Colours = Mapping[str, str]


def canonical(query: Query, *, solutions: bool) -> Query:
    """The query in the one way. With `solutions` the variables that it selects keep their names."""
    kept = frozenset(query.projection) if solutions else frozenset()
    flat = None if any(part == Apply("now", ()) for part in iterate_parts(query)) else to_conjunction(query)
    if flat is not None:
        return _rewritten_flat(query, flat, kept)
    ordered = replace(query, where=transform_operators(query.where, lambda each: _ordered_basic(each, kept)))
    return ordered if query.form == "construct" else renamed(ordered, kept)


def _rewritten_flat(query: Query, flat: Conjunction, kept: Collection[str]) -> Query:
    patterns, colours = ordered(flat.patterns, flat.filters, kept)
    filters = tuple(sorted(flat.filters, key=lambda each: _sign(each, colours)))
    inner: Operator = Filter(Basic(patterns), filters) if filters else Basic(patterns)
    return replace(
        query, where=Select(inner, flat.projection, distinct=flat.distinct, limit=flat.limit, offset=flat.offset)
    )


def _ordered_basic(operator: Operator, kept: Collection[str]) -> Operator:
    return Basic(ordered(operator.patterns, (), kept)[0]) if isinstance(operator, Basic) else operator


def ordered(
    patterns: Sequence[Pattern], filters: Sequence[Expression], kept: Collection[str]
) -> tuple[tuple[Pattern, ...], Colours]:
    """The patterns in an order that neither constants nor names decide, but for predicates and the names that are
    kept; and what tells the variables apart."""
    colours: Colours = defaultdict(str, {name: f"!{name}" for name in kept})
    colours = _refined(patterns, filters, colours)
    for pattern in _in_order(patterns, colours) if len(patterns) <= _MANY else ():
        if _tied(patterns, colours):
            # One of those that look alike is made the first; which one makes no difference if they are alike.
            first = {each.name: f"{colours[each.name]}#{slot}" for slot, each in _variables(pattern)}
            colours = _refined(patterns, filters, defaultdict(str, {**colours, **first}))
    return tuple(_in_order(patterns, colours)), colours


def _tied(patterns: Sequence[Pattern], colours: Colours) -> bool:
    return len({_signature(each, colours) for each in patterns}) < len(patterns)


def _in_order(patterns: Sequence[Pattern], colours: Colours) -> list[Pattern]:
    return sorted(patterns, key=lambda each: _signature(each, colours))


def _refined(patterns: Sequence[Pattern], filters: Sequence[Expression], colours: Colours) -> Colours:
    """Variables are told apart by what they stand beside, until that tells no more of them apart."""
    while True:
        told: defaultdict[str, list[str]] = defaultdict(list)
        for pattern in patterns:
            for slot, variable in _variables(pattern):
                told[variable.name].append(f"{slot}{_signature(pattern, colours)}")
        for each in filters:
            for name in Counter(part.name for part in iterate_parts(each) if isinstance(part, Var)):
                told[name].append(_sign(each, {**colours, name: "*"}))
        found = _ranked({name: f"{colours[name]}{sorted(each)}" for name, each in told.items()}, colours)
        if len(set(found.values())) <= len({colours[name] for name in found}):
            return found
        colours = found


def _ranked(told: Mapping[str, str], colours: Colours) -> Colours:
    ranks = {text: f"{rank:04}" for rank, text in enumerate(sorted(set(told.values())))}
    return defaultdict(str, {name: ranks[text] for name, text in told.items()})


def _signature(pattern: Pattern, colours: Colours) -> str:
    nodes: tuple[Node | None, ...] = (pattern.subject, pattern.object, pattern.graph)
    predicate = pattern.predicate
    named = predicate.term if isinstance(predicate, Const) else _node(predicate, colours)
    return f"({named}|{'|'.join(_node(each, colours) for each in nodes)})"


def _node(node: Node | None, colours: Colours) -> str:
    return "-" if node is None else f"?{colours.get(node.name, '')}" if isinstance(node, Var) else "c"


def _variables(pattern: Pattern) -> Iterable[tuple[int, Var]]:
    nodes = (pattern.subject, pattern.predicate, pattern.object, pattern.graph)
    return [(slot, node) for slot, node in enumerate(nodes) if isinstance(node, Var)]


def _sign(expression: object, colours: Mapping[str, str]) -> str:
    """What an expression looks like without its constants, but for those that stay in a shape."""
    match expression:
        case Var(name):
            return f"?{colours.get(name, '')}"
        case Const(term):
            return f"c{family_of(term)}"
        case Apply(op, (first, *rest)) if op in _COMPILED:
            return f"{op}({_sign(first, colours)},{rest!r})"
        case Apply(op, args):
            return f"{op}({','.join(_sign(each, colours) for each in args)})"
    return repr(expression)
