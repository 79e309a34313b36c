"""Outputs: the columns of a query, and which columns of its sources these are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, TypeVar

from sqlglot import exp

from triplewire.sparql.compile.bounds import Key, constant, key_of, points
from triplewire.sparql.compile.sql import Sql, is_null
from triplewire.sparql.readings import Intervals

Outside: TypeAlias = Mapping[str, tuple[Intervals, ...]]
"""What is wanted, or known, of the columns of a query, by their names."""

Told = TypeVar("Told")

_OPAQUE = ("group", "having", "limit", "offset", "qualify")


def is_opaque(query: exp.Query) -> bool:
    """Would a row that is there make a difference to others? Then no condition may be followed into it."""
    return any(query.args.get(name) for name in _OPAQUE) or any(each.find(exp.Window) for each in query.selects)


def names(query: exp.Expr) -> list[str]:
    """Of the columns that a query has, in order; those that it passes on as they come are not among them."""
    match query:
        case exp.Subquery():
            return names(query.this)
        case exp.SetOperation():
            return names(query.left)
        case exp.Select():
            return [each.alias_or_name for each in query.expressions if not isinstance(each, exp.Star)] + _passed(query)
    return []


def _passed(select: exp.Select) -> list[str]:
    start = select.args.get("from_")
    starred = any(isinstance(each, exp.Star) for each in select.expressions)
    return names(start.this) if starred and start is not None else []


def columns(select: exp.Select) -> Iterator[tuple[str, Key]]:
    """The names of those that are columns of a source, with these."""
    for each in select.expressions:
        inner = each.unalias()
        if isinstance(inner, exp.Cast) and inner.to.is_type("text", "varchar", "double", "timestamp"):
            inner = inner.this if _is_listed(select) else inner
        if isinstance(inner, exp.Column):
            yield each.alias_or_name, key_of(inner)
    start = select.args.get("from_")
    for name in _passed(select):
        yield name, (start.this.alias_or_name, name)  # type: ignore[union-attr]


def _is_listed(select: exp.Select) -> bool:
    """Is it over stated rows, whose columns are cast to what they are anyhow?"""
    start = select.args.get("from_")
    return start is not None and isinstance(start.this, exp.Values)


def listed(values: exp.Values) -> Outside:
    """What the columns of stated rows hold. No value is none of them."""
    rows = [each.expressions for each in values.expressions]
    held = {name: [row[place] for row in rows] for place, name in enumerate(values.args["alias"].columns)}
    found = {name.name: _held(cells) for name, cells in held.items()}
    return {name: (each,) for name, each in found.items() if each is not None}


def _held(cells: list[Sql]) -> Intervals | None:
    known = [constant(each) for each in cells if not is_null(each)]
    return None if None in known else points(each for each in known if each is not None)


def renamed(wanted: Mapping[str, Told], left: exp.Expr, right: exp.Expr) -> Mapping[str, Told]:
    """By the names of the other side of a union, whose columns are those in the same places."""
    pairs = dict(zip(names(left), names(right), strict=False))
    return {pairs[name]: each for name, each in wanted.items() if name in pairs}
