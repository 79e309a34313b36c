"""Levels: a pattern with its modifiers, of a query or of a sub-query, translated as section 18.2.4 says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from triplewire.sparql.algebra import (
    Aggregate,
    Apply,
    Expression,
    Extend,
    Filter,
    Group,
    Operator,
    Select,
    Var,
)
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.groups import joined
from triplewire.sparql.syntax.modifiers import Modifiers
from triplewire.sparql.syntax.scopes import Scoped
from triplewire.sparql.syntax.tokens import Token


@dataclass(frozen=True)
class Item:
    """A variable of the SELECT clause, with the expression that it stands for if there is one."""

    name: str
    token: Token
    value: Expression | None = None


class Level:
    """One pattern with its modifiers: what a SELECT, and every other form with modifiers, is made of."""

    def __init__(self, cursor: Cursor, where: Scoped, given: Modifiers, aggregates: dict[Aggregate, str]) -> None:
        self._cursor = cursor
        self._where = where
        self._given = given
        self._aggregates = aggregates
        self._grouped = bool(given.keys or aggregates)
        self._keys = {name for name, _ in given.keys}

    @property
    def modified(self) -> bool:
        """Is there a modifier but VALUES?"""
        return replace(self._given, values=None) != Modifiers()

    @property
    def names(self) -> tuple[str, ...]:
        """What `*` stands for."""
        trailing = self._given.values.names if self._given.values else ()
        return tuple(dict.fromkeys((*self._where.names, *trailing)))

    def everything(self, star: Token) -> Select:
        if self._grouped:
            raise self._cursor.wrong("variables or expressions, as there is a GROUP BY or an aggregate", star)
        return self.projected(self.names)

    def selection(self, items: tuple[Item, ...]) -> Select:
        """What a SELECT clause asks for, if it may."""
        self._check(items)
        return self.projected(tuple(item.name for item in items), items)

    def projected(self, names: tuple[str, ...], items: tuple[Item, ...] = ()) -> Select:
        """Grouped, filtered, joined with VALUES, extended, ordered, projected, sliced; in this order."""
        computed = {item.name for item in items if item.value is not None}
        given = self._given
        order = tuple(replace(each, expression=self._sampled(each.expression, computed)) for each in given.order)
        having = tuple(self._sampled(each, set()) for each in given.having)
        operator = self._extended(self._filtered(having), items)
        made = Select(operator, names, order=order, limit=given.limit, offset=given.offset)
        return self._cursor.over(made, operator, *(each.expression for each in given.order))

    def _check(self, items: tuple[Item, ...]) -> None:
        taken = {*self.names, *self._keys}
        shown = set(self._keys)
        for item in items:
            if item.value is not None and item.name in taken:
                raise self._cursor.wrong("a variable that is not yet in scope", item.token)
            used = {item.name} if item.value is None else set(_names(item.value))
            if self._grouped and not used <= shown:
                missing = ", ".join(f"?{name}" for name in sorted(used - shown))
                raise self._cursor.wrong(f"no {missing} that is neither grouped by nor in an aggregate", item.token)
            shown.add(item.name)

    def _sampled(self, value: Expression, computed: set[str]) -> Expression:
        """Where solutions are grouped, a variable that is not the same in all of a group stands for any of them."""
        if not self._grouped:
            return value
        if isinstance(value, Var) and not value.name.startswith(".") and value.name not in self._keys | computed:
            return Var(self._aggregates.setdefault(Aggregate("sample", value), f".agg{len(self._aggregates)}"))
        if isinstance(value, Apply):
            return Apply(value.op, tuple(self._sampled(each, computed) for each in value.args))
        return value

    def _filtered(self, having: tuple[Expression, ...]) -> Operator:
        cursor, operator = self._cursor, self._where.whole
        if self._grouped:
            aggregates = tuple((name, each) for each, name in self._aggregates.items())
            below = *(value for _, value in self._given.keys), *self._aggregates
            operator = cursor.over(Group(operator, self._given.keys, aggregates), operator, *below)
        if having:
            operator = cursor.over(Filter(operator, having), operator, *self._given.having)
        return joined(cursor, (operator, self._given.values)) if self._given.values else operator

    def _extended(self, operator: Operator, items: tuple[Item, ...]) -> Operator:
        for item in items:
            if item.value is not None:
                operator = self._cursor.over(Extend(operator, item.name, item.value), operator, item.value)
        return operator


def _names(value: Expression) -> Iterator[str]:
    if isinstance(value, Var) and not value.name.startswith((".", "_:")):
        yield value.name
    elif isinstance(value, Apply):
        for each in value.args:
            yield from _names(each)
