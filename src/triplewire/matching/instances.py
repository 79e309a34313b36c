"""Instances: a query with terms in the place of some of its variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from triplewire.model.errors import Unsupported
from triplewire.model.terms import is_iri
from triplewire.sparql import Apply, Const, Node, Pattern, Query, Var
from triplewire.sparql.algebra import Extend, Graph, Group, Reach, Select, Values
from triplewire.sparql.traversal import iterate_parts


def instance(query: Query, terms: Mapping[str, str]) -> Query:
    """The query with each of these variables replaced by its term; none of them is in its results any more.

    Raises Unsupported where a variable is given a value by the query itself, or where its term cannot stand.
    """
    if not terms:
        return query
    for part in iterate_parts(query):
        for name in _given_by(part):
            if name in terms:
                raise Unsupported(f"${name} where the query gives it a value", hint="a parameter has its value already")
    made: Query = _filled(query, terms)
    for part in iterate_parts(made):
        _check(part)
    return made


def _given_by(part: object) -> Iterator[str]:
    """The variables to which a part of the algebra gives values by itself; of those that it asks for, BOUND."""
    match part:
        case Extend(name=name):
            yield name
        case Values(names=names):
            yield from names
        case Group(keys=keys, aggregates=aggregates):
            yield from (name for name, _ in (*keys, *aggregates))
        case Apply("bound", (Var(name),)):
            yield name


def _filled(part: Any, terms: Mapping[str, str]) -> Any:  # noqa: ANN401 - a part of the algebra, of its own type
    if isinstance(part, Var):
        return Const(terms[part.name]) if part.name in terms else part
    if isinstance(part, tuple):
        return tuple(_filled(each, terms) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    made = replace(part, **{field.name: _filled(getattr(part, field.name), terms) for field in fields(part)})
    if isinstance(made, Select | Query):
        return replace(made, projection=tuple(name for name in made.projection if name not in terms))
    return made


def _check(part: object) -> None:
    for place, node in _places(part):
        if isinstance(node, Const) and not is_iri(node.term):
            raise Unsupported(f"{node.term} as {place}", hint="only an IRI can be one")


def _places(part: object) -> Iterator[tuple[str, Node | None]]:
    """The nodes of a part of the algebra that can be no literals, and what each of them is."""
    match part:
        case Pattern(subject, predicate, _, graph):
            yield from (("a subject", subject), ("a predicate", predicate), ("a graph", graph))
        case Reach(subject, _, _, graph):
            yield from (("a subject", subject), ("a graph", graph))
        case Graph(name):
            yield "a graph", name
