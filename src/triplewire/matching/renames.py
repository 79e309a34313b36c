"""Renames: other names for the variables of a query, wherever the algebra has names."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import count
from typing import Any

from triplewire.sparql import Query, Var, algebra
from triplewire.sparql.algebra import UNBOUND, Extend, Group, Select, Values
from triplewire.sparql.traversal import iterate_parts

_KNOWN = (
    *(algebra.Var, algebra.Const, algebra.Param, algebra.Apply, algebra.Exists, algebra.Aggregate, algebra.Pattern),
    *(algebra.Link, algebra.Inverse, algebra.Chain, algebra.Either, algebra.Repeat, algebra.Negated, algebra.Basic),
    *(algebra.Reach, algebra.Join, algebra.LeftJoin, algebra.Union, algebra.Minus, algebra.Filter, algebra.Extend),
    *(algebra.Values, algebra.Graph, algebra.Group, algebra.Order, algebra.Select, algebra.Dataset, algebra.Query),
)
"""What is known to have names nowhere but where they are looked for here."""


def renamed(query: Query, kept: Collection[str]) -> Query:
    """The query with its variables named in the order in which they are met, but for those to keep and those that were
    made while translating. One with parts that are not known here stays as it is."""
    if any(type(part) not in _KNOWN for part in iterate_parts(query)):
        return query
    fresh = filter(lambda each: each not in kept, (f"v{number}" for number in count()))
    blank = (f"_:v{number}" for number in count())
    names: dict[str, str] = {}
    for name in _met(query):
        if name not in kept and name not in names and not name.startswith(".") and name != UNBOUND.name:
            names[name] = next(blank if name.startswith("_:") else fresh)
    made: Query = _with(query, names)
    return made


def _met(query: Query) -> Iterator[str]:
    """The names of the query in the order in which they stand in it, some more than once."""
    for part in iterate_parts(query.where):
        match part:
            case Var(name) | Extend(name=name):
                yield name
            case Values(names=names) | Select(projection=names):
                yield from names
            case Group(keys=keys, aggregates=aggregates):
                yield from (name for name, _ in (*keys, *aggregates))


def _with(part: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - a part of the algebra, of its own type
    if isinstance(part, tuple):
        return tuple(_with(each, names) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    made = replace(part, **{field.name: _with(getattr(part, field.name), names) for field in fields(part)})
    match made:
        case Var(name) | Extend(name=name):
            return replace(made, name=names.get(name, name))
        case Values(names=columns):
            return replace(made, names=_each(columns, names))
        case Select(projection=projection) | Query(projection=projection):
            return replace(made, projection=_each(projection, names))
        case Group(keys=keys, aggregates=aggregates):
            return replace(made, keys=_pairs(keys, names), aggregates=_pairs(aggregates, names))
    return made


def _each(given: tuple[str, ...], names: dict[str, str]) -> tuple[str, ...]:
    return tuple(names.get(name, name) for name in given)


def _pairs(given: tuple[tuple[str, Any], ...], names: dict[str, str]) -> tuple[tuple[str, Any], ...]:
    return tuple((names.get(name, name), each) for name, each in given)
