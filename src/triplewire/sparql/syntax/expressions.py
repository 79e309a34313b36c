"""Expressions: the operators of SPARQL by their precedence, and calls of the functions that we know."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack

from triplewire.model.terms import is_literal, parse_literal
from triplewire.sparql.algebra import Apply, Const, Expression, Var
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.terms import address, at_iri, at_literal, iri, literal
from triplewire.sparql.syntax.tokens import Token

ARITIES: dict[str, range] = {
    "STR": range(1, 2),
    "LANG": range(1, 2),
    "DATATYPE": range(1, 2),
    "BOUND": range(1, 2),
    "REGEX": range(2, 4),
    "STRSTARTS": range(2, 3),
    "STRENDS": range(2, 3),
    "CONTAINS": range(2, 3),
    "ISIRI": range(1, 2),
    "ISURI": range(1, 2),
    "ISBLANK": range(1, 2),
    "ISLITERAL": range(1, 2),
    "ISNUMERIC": range(1, 2),
    "SAMETERM": range(2, 3),
}
"""The functions that a query may call, with the numbers of arguments that they take."""

FLAGS = "ims"
"""The flags of REGEX that every engine takes."""

_PARTS = re.compile(r"\\.|-\[", re.DOTALL)
_MISSING = {
    **{f"\\{digit}": "a back-reference" for digit in "123456789"},
    **{f"\\{letter}": f"the character class \\{letter}" for letter in "icIC"},
    "-[": "a subtraction of character classes",
}

_COMPARISONS = ("=", "!=", "<", ">", "<=", ">=")
_EXPECTED = "an expression: a variable, a literal, an IRI, a function or `(`"


def constraint(cursor: Cursor) -> Expression:
    """What follows FILTER: an expression in parentheses, or a call."""
    if cursor.at("("):
        return _bracketed(cursor)
    if cursor.token.kind != "word" and not at_iri(cursor):
        raise cursor.wrong("`(` or a function")
    return _primary(cursor)


def expression(cursor: Cursor) -> Expression:
    """An expression of any precedence."""
    with cursor.nested():
        return _chain(cursor, "||", lambda: _chain(cursor, "&&", lambda: _relation(cursor)))


def _chain(cursor: Cursor, op: str, operand: Callable[[], Expression]) -> Expression:
    parts = [operand()]
    while cursor.accept(op):
        parts.append(operand())
    return parts[0] if len(parts) == 1 else Apply(op, tuple(parts))


def _relation(cursor: Cursor) -> Expression:
    left = _sum(cursor)
    if op := cursor.accept(*_COMPARISONS):
        return Apply(op.text, (left, _sum(cursor)))
    if cursor.accept("IN"):
        return Apply("in", (left, *_arguments(cursor)))
    if cursor.at("NOT") and cursor.following.word == "IN":
        cursor.take()
        cursor.take()
        return Apply("not in", (left, *_arguments(cursor)))
    return left


def _sum(cursor: Cursor) -> Expression:
    return _left(cursor, ("+", "-"), lambda: _left(cursor, ("*", "/"), lambda: _unary(cursor)))


def _left(cursor: Cursor, ops: tuple[str, ...], operand: Callable[[], Expression]) -> Expression:
    """A chain leans to the left, so it is as deep as it is long."""
    result = operand()
    with ExitStack() as levels:
        while cursor.at(*ops):
            levels.enter_context(cursor.nested())
            op = cursor.take()
            result = Apply(op.text, (result, operand()))
    return result


def _unary(cursor: Cursor) -> Expression:
    if at_literal(cursor):
        return _primary(cursor)
    op = cursor.accept("!", "+", "-")
    return Apply(op.text, (_primary(cursor),)) if op else _primary(cursor)


def _primary(cursor: Cursor) -> Expression:
    token = cursor.token
    cursor.count_term()
    if cursor.at("("):
        return _bracketed(cursor)
    if token.kind == "variable":
        return Var(cursor.take().text[1:])
    if at_literal(cursor):
        return literal(cursor)
    if at_iri(cursor):
        return _iri_or_call(cursor)
    if cursor.at("<<("):
        raise cursor.unsupported("triple term")
    if token.kind == "word":
        return _call(cursor)
    raise cursor.wrong(_EXPECTED)


def _bracketed(cursor: Cursor) -> Expression:
    cursor.expect("(")
    inner = expression(cursor)
    cursor.expect(")")
    return inner


def _iri_or_call(cursor: Cursor) -> Const:
    token = cursor.token
    if cursor.following.text == "(":
        raise cursor.unsupported(f"function <{address(cursor)}>", token)
    return iri(cursor)


def _call(cursor: Cursor) -> Expression:
    name = cursor.take()
    if name.word in ("EXISTS", "NOT"):
        raise cursor.unsupported("EXISTS" if name.word == "EXISTS" else "NOT EXISTS", name)
    if not cursor.at("("):
        raise cursor.wrong(_EXPECTED, name)
    if name.word not in ARITIES:
        raise cursor.unsupported(name.word, name, f"known functions are {', '.join(sorted(ARITIES))}")
    return _checked(cursor, name, _arguments(cursor))


def _checked(cursor: Cursor, name: Token, arguments: tuple[Expression, ...]) -> Apply:
    arity = ARITIES[name.word]
    if len(arguments) not in arity:
        raise cursor.wrong(f"{' or '.join(map(str, arity))} arguments for {name.word}, not {len(arguments)}", name)
    if name.word == "BOUND" and not isinstance(arguments[0], Var):
        raise cursor.wrong("a variable as the argument of BOUND", name)
    if name.word == "REGEX":
        _check_pattern(cursor, name, arguments[1])
        _check_flags(cursor, name, arguments[2:])
    return Apply("isiri" if name.word == "ISURI" else name.word.lower(), arguments)


def _check_pattern(cursor: Cursor, name: Token, pattern: Expression) -> None:
    """Refuses what SPARQL's patterns have and engines have not. What is wrong in any pattern is an error when run."""
    if isinstance(pattern, Const) and is_literal(pattern.term):
        for found in _PARTS.finditer(parse_literal(pattern.term).lexical):
            if construct := _MISSING.get(found[0]):
                raise cursor.unsupported(f"REGEX with {construct}", name)


def _check_flags(cursor: Cursor, name: Token, flags: tuple[Expression, ...]) -> None:
    for each in flags:
        if not isinstance(each, Const):
            raise cursor.unsupported("REGEX with flags that are not a constant", name)
        for flag in parse_literal(each.term).lexical if is_literal(each.term) else "":
            if flag not in FLAGS:
                raise cursor.unsupported(f"REGEX flag {flag}", name, f"known flags are {', '.join(FLAGS)}")


def _arguments(cursor: Cursor) -> tuple[Expression, ...]:
    cursor.expect("(")
    if cursor.accept(")"):
        return ()
    found = [expression(cursor)]
    while cursor.accept(","):
        found.append(expression(cursor))
    cursor.expect(")")
    return tuple(found)
