"""Expressions: the operators of SPARQL by their precedence."""

from __future__ import annotations

from triplewire.sparql.algebra import Apply, Expression, Var
from triplewire.sparql.syntax.calls import Call
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.terms import at_iri, at_literal, iri, literal, skip_triple

_COMPARISONS = ("=", "!=", "<", ">", "<=", ">=")
_EXPECTED = "an expression: a variable, a literal, an IRI, a function or `(`"


def constraint(cursor: Cursor) -> Expression:
    """What may follow FILTER, HAVING and ORDER BY: an expression in parentheses, or a call."""
    if cursor.at("("):
        return bracketed(cursor)
    called = call(cursor)
    if called is None:
        raise cursor.wrong("`(` or a function")
    return called


def bracketed(cursor: Cursor) -> Expression:
    cursor.expect("(")
    inner = expression(cursor)
    cursor.expect(")")
    return inner


def call(cursor: Cursor) -> Expression | None:
    """The call that comes next; None if none does."""
    cursor.count_term()
    return Call(cursor, expression).parsed()


def expression(cursor: Cursor) -> Expression:
    """An expression of any precedence."""
    with cursor.nested():
        parts = [_conjunction(cursor)]
        while cursor.accept("||"):
            parts.append(_conjunction(cursor))
    return parts[0] if len(parts) == 1 else _apply(cursor, "||", *parts)


def _conjunction(cursor: Cursor) -> Expression:
    parts = [_relation(cursor)]
    while cursor.accept("&&"):
        parts.append(_relation(cursor))
    return parts[0] if len(parts) == 1 else _apply(cursor, "&&", *parts)


def _relation(cursor: Cursor) -> Expression:
    left = _sum(cursor)
    if cursor.at("<<", "<<("):
        cursor.part()
    if op := cursor.accept(*_COMPARISONS):
        return _apply(cursor, op.key, left, _sum(cursor))
    if cursor.accept("IN"):
        return _apply(cursor, "in", left, *Call(cursor, expression).arguments())
    if cursor.at("NOT") and cursor.following.key == "IN":
        cursor.take()
        cursor.take()
        return _apply(cursor, "not in", left, *Call(cursor, expression).arguments())
    return left


def _sum(cursor: Cursor) -> Expression:
    total = _product(cursor, _unary(cursor))
    while op := cursor.accept("+", "-"):
        total = _apply(cursor, op.key, total, _product(cursor, _unary(cursor)))
    return total


def _product(cursor: Cursor, first: Expression) -> Expression:
    while op := cursor.accept("*", "/"):
        first = _apply(cursor, op.key, first, _unary(cursor))
    return first


def _unary(cursor: Cursor) -> Expression:
    if cursor.at("!", "+", "-") and not at_literal(cursor):
        return _apply(cursor, cursor.take().key, _primary(cursor))
    return _primary(cursor)


def _primary(cursor: Cursor) -> Expression:
    if cursor.accept("("):
        inner = expression(cursor)
        cursor.expect(")")
        return inner
    if (called := call(cursor)) is not None:
        return called
    if cursor.token.kind == "variable":
        return Var(cursor.take().text[1:])
    if at_literal(cursor):
        return literal(cursor)
    if at_iri(cursor):
        return iri(cursor)
    if cursor.at("<<("):
        return skip_triple(cursor)
    raise cursor.wrong(_EXPECTED)


def _apply(cursor: Cursor, op: str, *args: Expression) -> Expression:
    return cursor.over(Apply(op, args), *args)
