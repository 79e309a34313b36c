"""Solution modifiers: what stands behind the pattern of a query or sub-query."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from triplewire.sparql.algebra import Aggregate, Expression, Order, Values, Var
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.expressions import bracketed, call, constraint, expression
from triplewire.sparql.syntax.terms import variable
from triplewire.sparql.syntax.values import values

_MOST = 10**18
"""More rows than there can be; engines hold numbers of 64 bits."""


@dataclass(frozen=True)
class Modifiers:
    """Each as it was written. A key of GROUP BY has a name, made up for an expression without one."""

    keys: tuple[tuple[str, Expression], ...] = ()
    having: tuple[Expression, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    values: Values | None = None


def modifiers(cursor: Cursor, aggregates: dict[Aggregate, str], names: tuple[str, ...]) -> Modifiers:
    """Aggregates are added to those of the SELECT clause; `names` are the variables in scope."""
    keys = _keys(cursor, names)
    cursor.aggregates = aggregates
    having, order = _having(cursor), _order(cursor)
    cursor.aggregates = None
    limit, offset = _slice(cursor)
    return Modifiers(keys, having, order, limit, offset, _values(cursor))


def _values(cursor: Cursor) -> Values | None:
    if not (word := cursor.accept("VALUES")):
        return None
    cursor.mark("VALUES", word)
    return values(cursor)


def _keys(cursor: Cursor, names: tuple[str, ...]) -> tuple[tuple[str, Expression], ...]:
    if not (word := cursor.accept("GROUP")):
        return ()
    cursor.mark("GROUP BY", word)
    cursor.expect("BY")
    found: dict[str, Expression] = {}
    taken = frozenset(names)
    while (key := _key(cursor, taken, found)) is not None:
        name, value = key
        found[name or f".key{len(found)}"] = value
    if not found:
        raise cursor.wrong("a variable, a function or `(`")
    return tuple(found.items())


def _key(cursor: Cursor, names: Set[str], found: Mapping[str, Expression]) -> tuple[str, Expression] | None:
    if cursor.token.kind == "variable":
        cursor.count_term()
        name = variable(cursor)
        return name, Var(name)
    if not cursor.accept("("):
        value = call(cursor)
        return None if value is None else ("", value)
    value = expression(cursor)
    name = ""
    if cursor.accept("AS"):
        if cursor.token.text[1:] in names or cursor.token.text[1:] in found:
            raise cursor.wrong("a variable that is not yet in scope")
        name = variable(cursor)
    cursor.expect(")")
    return name, value


def _having(cursor: Cursor) -> tuple[Expression, ...]:
    if not cursor.accept("HAVING"):
        return ()
    found = [constraint(cursor)]
    while (more := _condition(cursor)) is not None:
        found.append(more)
    return tuple(found)


def _condition(cursor: Cursor) -> Expression | None:
    return bracketed(cursor) if cursor.at("(") else call(cursor)


def _order(cursor: Cursor) -> tuple[Order, ...]:
    if not (word := cursor.accept("ORDER")):
        return ()
    cursor.mark("ORDER BY", word)
    cursor.expect("BY")
    found: list[Order] = []
    while (each := _comparator(cursor)) is not None:
        found.append(each)
    if not found:
        raise cursor.wrong("a variable, ASC, DESC, a function or `(`")
    return tuple(found)


def _comparator(cursor: Cursor) -> Order | None:
    if direction := cursor.accept("ASC", "DESC"):
        return Order(bracketed(cursor), descending=direction.key == "DESC")
    if cursor.token.kind == "variable":
        cursor.count_term()
        return Order(Var(variable(cursor)))
    value = _condition(cursor)
    return None if value is None else Order(value)


def _slice(cursor: Cursor) -> tuple[int | None, int]:
    given: dict[str, int] = {}
    while cursor.at("LIMIT", "OFFSET") and cursor.token.key not in given:
        cursor.mark(cursor.token.key)
        word = cursor.take().key
        digits = cursor.expect_kind("integer", "a whole number").text.lstrip("0") or "0"
        given[word] = int(digits) if len(digits) < len(str(_MOST)) else _MOST
    return given.get("LIMIT"), given.get("OFFSET", 0)
