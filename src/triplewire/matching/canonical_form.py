"""Canonical form: queries that differ only in the order of patterns and the names of variables become one query.

Subscriptions that ask the same then have the same shape and constants, and are evaluated once. Patterns are ordered by
colour refinement, in which constants take no part, so that queries which differ in constants alone still have one
shape. Constants that may be swapped are sorted. A query so symmetric that the order of its text decides may keep two
forms; two queries of different meaning never share one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import count
from threading import Lock
from typing import Any, Final

from triplewire.matching.shapes import LiftedShape, Shape
from triplewire.model.cache import BoundedCache
from triplewire.sparql import Conjunction, algebra, family_of, to_conjunction
from triplewire.sparql.algebra import Apply, Const, Expression, Node, Operator, Param, Pattern, Query, Var
from triplewire.sparql.parameters import replace_in_pattern
from triplewire.sparql.traversal import iterate_parts, transform_operators

CACHED_SKELETONS: Final = 4_096
"""Skeletons of texts whose shape is cached: at worst 16 kB of text each, 100 MB."""


_KNOWN = (
    *(algebra.Var, algebra.Const, algebra.Param, algebra.Apply, algebra.Exists, algebra.Aggregate, algebra.Pattern),
    *(algebra.Link, algebra.Inverse, algebra.Chain, algebra.Either, algebra.Repeat, algebra.Negated, algebra.Basic),
    *(algebra.Reach, algebra.Join, algebra.LeftJoin, algebra.Union, algebra.Minus, algebra.Filter, algebra.Extend),
    *(algebra.Values, algebra.Graph, algebra.Group, algebra.Order, algebra.Select, algebra.Dataset, algebra.Query),
)
"""Parts of the algebra whose names all stand where `rename_variables` looks for them."""


def rename_variables(query: Query, kept: Collection[str]) -> Query:
    """Rename the variables of a query in the order of their first occurrence, but for those to keep and those that
    the translation made. A query with parts that are not known here stays as it is."""
    if any(type(part) not in _KNOWN for part in iterate_parts(query)):
        return query
    fresh = filter(lambda each: each not in kept, (f"v{number}" for number in count()))
    blank = (f"_:v{number}" for number in count())
    names: dict[str, str] = {}
    for name in _names_in_order(query):
        if name not in kept and name not in names and not name.startswith(".") and name != algebra.UNBOUND.name:
            names[name] = next(blank if name.startswith("_:") else fresh)
    made: Query = _rename_part(query, names)
    return made


def _names_in_order(query: Query) -> Iterator[str]:
    """The names in a query in order, some more than once."""
    for part in iterate_parts(query.where):
        match part:
            case Var(name) | algebra.Extend(name=name):
                yield name
            case algebra.Values(names=names) | algebra.Select(projection=names):
                yield from names
            case algebra.Group(keys=keys, aggregates=aggregates):
                yield from (name for name, _ in (*keys, *aggregates))


def _rename_part(part: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - a part of the algebra, of its own type
    if isinstance(part, tuple):
        return tuple(_rename_part(each, names) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    made = replace(part, **{field.name: _rename_part(getattr(part, field.name), names) for field in fields(part)})
    match made:
        case Var(name) | algebra.Extend(name=name):
            return replace(made, name=names.get(name, name))
        case algebra.Values(names=columns):
            return replace(made, names=_each(columns, names))
        case algebra.Select(projection=projection) | Query(projection=projection):
            return replace(made, projection=_each(projection, names))
        case algebra.Group(keys=keys, aggregates=aggregates):
            return replace(made, keys=_pairs(keys, names), aggregates=_pairs(aggregates, names))
    return made


def _each(given: tuple[str, ...], names: dict[str, str]) -> tuple[str, ...]:
    return tuple(names.get(name, name) for name in given)


def _pairs(given: tuple[tuple[str, Any], ...], names: dict[str, str]) -> tuple[tuple[str, Any], ...]:
    return tuple((names.get(name, name), each) for name, each in given)


_COMPILED = ("regex", "replace")
_MANY = 32
"""Patterns above which ties are decided by the text: to break them takes the cube of their number."""

Colours = Mapping[str, str]


def canonical_form(query: Query, *, solutions: bool) -> Query:
    """The canonical form of a query. With `solutions` the variables that it selects keep their names."""
    kept = frozenset(query.projection) if solutions else frozenset()
    flat = None if any(part == Apply("now", ()) for part in iterate_parts(query)) else to_conjunction(query)
    if flat is not None:
        return _rewrite_conjunction(query, flat, kept)
    ordered = replace(query, where=transform_operators(query.where, lambda each: _order_basic(each, kept)))
    return ordered if query.form == "construct" else rename_variables(ordered, kept)


def _rewrite_conjunction(query: Query, flat: Conjunction, kept: Collection[str]) -> Query:
    patterns, colours = order_patterns(flat.patterns, flat.filters, kept)
    filters = tuple(sorted(flat.filters, key=lambda each: _expression_signature(each, colours)))
    inner: Operator = algebra.Filter(algebra.Basic(patterns), filters) if filters else algebra.Basic(patterns)
    return replace(
        query,
        where=algebra.Select(inner, flat.projection, distinct=flat.distinct, limit=flat.limit, offset=flat.offset),
    )


def _order_basic(operator: Operator, kept: Collection[str]) -> Operator:
    return (
        algebra.Basic(order_patterns(operator.patterns, (), kept)[0])
        if isinstance(operator, algebra.Basic)
        else operator
    )


def order_patterns(
    patterns: Sequence[Pattern], filters: Sequence[Expression], kept: Collection[str]
) -> tuple[tuple[Pattern, ...], Colours]:
    """Order patterns by predicates and kept names, not by constants or other names. Return the colours of the
    variables, too."""
    colours: Colours = defaultdict(str, {name: f"!{name}" for name in kept})
    colours = _refine_colours(patterns, filters, colours)
    for pattern in _sort_patterns(patterns, colours) if len(patterns) <= _MANY else ():
        if len({_signature(each, colours) for each in patterns}) < len(patterns):
            # One of the patterns that look alike is made the first; if they are symmetric, any choice gives the same
            # result.
            first = {each.name: f"{colours[each.name]}#{slot}" for slot, each in _variables(pattern)}
            colours = _refine_colours(patterns, filters, defaultdict(str, {**colours, **first}))
    return tuple(_sort_patterns(patterns, colours)), colours


def _sort_patterns(patterns: Sequence[Pattern], colours: Colours) -> list[Pattern]:
    return sorted(patterns, key=lambda each: _signature(each, colours))


def _refine_colours(patterns: Sequence[Pattern], filters: Sequence[Expression], colours: Colours) -> Colours:
    """Colour variables by their neighbours until no colour class splits any more."""
    while True:
        signatures: defaultdict[str, list[str]] = defaultdict(list)
        for pattern in patterns:
            for slot, variable in _variables(pattern):
                signatures[variable.name].append(f"{slot}{_signature(pattern, colours)}")
        for each in filters:
            for name in Counter(part.name for part in iterate_parts(each) if isinstance(part, Var)):
                signatures[name].append(_expression_signature(each, {**colours, name: "*"}))
        found = _rank_colours({name: f"{colours[name]}{sorted(each)}" for name, each in signatures.items()}, colours)
        if len(set(found.values())) <= len({colours[name] for name in found}):
            return found
        colours = found


def _rank_colours(signatures: Mapping[str, str], colours: Colours) -> Colours:
    ranks = {text: f"{rank:04}" for rank, text in enumerate(sorted(set(signatures.values())))}
    return defaultdict(str, {name: ranks[text] for name, text in signatures.items()})


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


def _expression_signature(expression: object, colours: Mapping[str, str]) -> str:
    """An expression without its constants, but for those that stay in a shape."""
    match expression:
        case Var(name):
            return f"?{colours.get(name, '')}"
        case Const(term):
            return f"c{family_of(term)}"
        case Apply(op, (first, *rest)) if op in _COMPILED:
            return f"{op}({_expression_signature(first, colours)},{rest!r})"
        case Apply(op, args):
            return f"{op}({','.join(_expression_signature(each, colours) for each in args)})"
    return repr(expression)


class ConstantSymmetries:
    """A cache of the symmetric parameters of shapes, by key. Thread-safe."""

    def __init__(self, size: int = CACHED_SKELETONS) -> None:
        self._lock = Lock()
        self._cache: BoundedCache[str, tuple[tuple[int, ...], ...]] = BoundedCache(size)

    def sort_constants(self, lifted: LiftedShape) -> LiftedShape:
        """The same query, with interchangeable constants sorted."""
        groups = self._groups(lifted.shape)
        if not groups:
            return lifted
        constants = list(lifted.constants)
        for group in groups:
            for index, term in zip(group, sorted(lifted.constants[each] for each in group), strict=True):
                constants[index] = term
        return LiftedShape(lifted.shape, tuple(constants))

    def _groups(self, shape: Shape) -> tuple[tuple[int, ...], ...]:
        with self._lock:
            found = self._cache.get(shape.key)
        if found is None:
            found = find_symmetries(shape)
            with self._lock:
                self._cache.put(shape.key, found)
        return found


def find_symmetries(shape: Shape) -> tuple[tuple[int, ...], ...]:
    """Groups of interchangeable parameters: each stands in a single pattern, and these patterns are the same but for
    it."""
    if isinstance(shape.query, Query):
        return ()
    parameters: defaultdict[str, list[int]] = defaultdict(list)
    for pattern in shape.query.patterns:
        found = [node.index for node in (pattern.subject, pattern.object, pattern.graph) if isinstance(node, Param)]
        if len(found) == 1:
            form = replace_in_pattern(pattern, lambda each: Const("") if isinstance(each, Param) else each)
            parameters[repr(form)].append(found[0])
    used = Counter(part.index for part in iterate_parts((shape.query, shape.template)) if isinstance(part, Param))
    alike = ([index for index in each if used[index] == 1] for each in parameters.values())
    return tuple(tuple(sorted(each)) for each in alike if len(each) > 1)
