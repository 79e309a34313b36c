"""Selections: the SELECT clause, of a query or of a sub-query."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from triplewire.sparql.algebra import Aggregate
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.expressions import expression
from triplewire.sparql.syntax.groups import group
from triplewire.sparql.syntax.levels import Item, Level
from triplewire.sparql.syntax.modifiers import modifiers
from triplewire.sparql.syntax.scopes import Scoped
from triplewire.sparql.syntax.terms import variable
from triplewire.sparql.syntax.tokens import Token


@dataclass(frozen=True)
class Clause:
    """What stands between SELECT and the pattern; `star` is the token if all is selected."""

    distinct: bool
    reduced: bool
    star: Token | None
    items: tuple[Item, ...] = ()
    aggregates: dict[Aggregate, str] = field(default_factory=dict)


def clause(cursor: Cursor) -> Clause:
    cursor.expect("SELECT")
    distinct = bool(cursor.accept("DISTINCT"))
    reduced = not distinct and bool(cursor.accept("REDUCED"))
    if star := cursor.accept("*"):
        return Clause(distinct, reduced, star)
    aggregates: dict[Aggregate, str] = {}
    return Clause(distinct, reduced, None, _items(cursor, aggregates), aggregates)


def selected(cursor: Cursor, wanted: Clause) -> Scoped:
    """The pattern and the modifiers of a SELECT; what it selects is in scope after it."""
    level = leveled(cursor, where(cursor), wanted.aggregates)
    made = level.everything(wanted.star) if wanted.star else level.selection(wanted.items)
    made = cursor.over(replace(made, distinct=wanted.distinct, reduced=wanted.reduced), made.inner)
    return Scoped(made, made.projection, made)


def select(cursor: Cursor) -> Scoped:
    """A sub-query, from the word SELECT on."""
    return selected(cursor, clause(cursor))


def where(cursor: Cursor) -> Scoped:
    cursor.accept("WHERE")
    cursor.mark("a query without a triple pattern")
    return group(cursor)


def leveled(cursor: Cursor, pattern: Scoped, aggregates: dict[Aggregate, str]) -> Level:
    """A pattern with the modifiers that come next; `aggregates` are those of the SELECT clause."""
    return Level(cursor, pattern, modifiers(cursor, aggregates, pattern.names), aggregates)


def _items(cursor: Cursor, aggregates: dict[Aggregate, str]) -> tuple[Item, ...]:
    found: dict[str, Item] = {}
    cursor.aggregates = aggregates
    while cursor.token.kind == "variable" or cursor.at("("):
        cursor.count_term()
        item = _item(cursor)
        former = found.setdefault(item.name, item)
        if former is not item and (former.value or item.value):
            raise cursor.wrong("a variable that is selected once", item.token)
    cursor.aggregates = None
    if not found:
        raise cursor.wrong("`*`, a variable or `(`")
    return tuple(found.values())


def _item(cursor: Cursor) -> Item:
    if not cursor.accept("("):
        token = cursor.token
        return Item(variable(cursor), token)
    value = expression(cursor)
    cursor.expect("AS")
    token = cursor.token
    name = variable(cursor)
    cursor.expect(")")
    return Item(name, token, value)
