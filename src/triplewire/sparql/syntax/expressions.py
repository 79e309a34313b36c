"""Grammar of expressions: operators by precedence, function calls with their arities, casts, EXISTS and aggregates."""

from __future__ import annotations

import sys
from collections.abc import Callable

from triplewire.model.terms import XSD
from triplewire.sparql.algebra import Aggregate, Apply, Const, Exists, Expression, Var
from triplewire.sparql.syntax import terms
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.lexer import Token

_ONE = (
    "STR LANG DATATYPE IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI YEAR MONTH DAY HOURS MINUTES "
    "SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512 ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC"
)
_TWO = "LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM"

ARITIES: dict[str, range] = {
    **dict.fromkeys(["RAND", "NOW", "UUID", "STRUUID"], range(1)),
    **dict.fromkeys(_ONE.split(), range(1, 2)),
    **dict.fromkeys(_TWO.split(), range(2, 3)),
    "BNODE": range(2),
    "BOUND": range(1, 2),
    "COALESCE": range(sys.maxsize),
    "CONCAT": range(sys.maxsize),
    "IF": range(3, 4),
    "REGEX": range(2, 4),
    "REPLACE": range(3, 5),
    "SUBSTR": range(2, 4),
}

AGGREGATES = frozenset(["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"])

FUNCTION_ALIASES = {"URI": "iri", "ISURI": "isiri"}
"""Aliases of functions."""

_CLAUSES = (
    "SELECT ASK CONSTRUCT DESCRIBE DISTINCT REDUCED WHERE FROM NAMED GRAPH OPTIONAL UNION MINUS SERVICE SILENT BIND AS "
    "VALUES UNDEF FILTER NOT EXISTS IN GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET TRUE FALSE A SEPARATOR"
)

RESERVED_WORDS = frozenset(_CLAUSES.split())
"""Keywords that are no function names even before a parenthesis."""

_TYPES = "boolean integer decimal float double string dateTime date"

CASTS = frozenset(f"<{XSD}{name}>" for name in _TYPES.split())
"""The types whose IRIs may be called as casts."""

KNOWN_FUNCTIONS = ", ".join(sorted({*ARITIES, *AGGREGATES}))
KNOWN_CASTS = ", ".join(f"xsd:{name}" for name in _TYPES.split())


class CallParser:
    """A parser of one call. `inner` parses its arguments."""

    def __init__(self, cursor: Cursor, inner: Callable[[Cursor], Expression]) -> None:
        self._cursor = cursor
        self._inner = inner

    def parsed(self) -> Expression | None:
        """Parse a call; if none begins here, return None and consume nothing."""
        cursor = self._cursor
        name = cursor.token
        if name.key == "EXISTS":
            return self._exists()
        if name.key == "NOT" and cursor.following.key == "EXISTS":
            cursor.take()
            inner = self._exists()
            return cursor.check_height(Apply("!", (inner,)), inner)
        if cursor.following.key != "(":
            return None
        if terms.at_iri(cursor):
            return self._by_iri(name)
        return self._by_name(name) if name.kind == "word" else None

    def _exists(self) -> Expression:
        cursor = self._cursor
        cursor.record_span("EXISTS", cursor.expect("EXISTS"))
        found = cursor.rules.group(cursor).whole
        return cursor.check_height(Exists(found), found)

    def _by_name(self, name: Token) -> Expression | None:
        if name.key in AGGREGATES:
            return self._aggregate(self._cursor.take())
        if name.key in RESERVED_WORDS:
            return None
        self._cursor.take()
        if name.key == "BOUND":
            return self._bound()
        arguments = self.arguments()
        self._cursor.record_span(f"function {name.key}", name)
        if name.key not in ARITIES:
            self._cursor.refuse(f"function {name.key}", name, f"known functions are {KNOWN_FUNCTIONS}")
        else:
            self._check(name, ARITIES[name.key], arguments)
        if name.key in ("IRI", "URI") and self._cursor.base is not None:
            arguments = (*arguments, Const(f"<{self._cursor.base}>"))
        return self._cursor.check_height(Apply(FUNCTION_ALIASES.get(name.key, name.key.lower()), arguments), *arguments)

    def _by_iri(self, name: Token) -> Expression:
        function = f"<{terms.parse_iri_text(self._cursor)}>"
        distinct = self._cursor.following.key == "DISTINCT"
        arguments = self.arguments(distinct)
        if function not in CASTS or distinct:
            self._cursor.refuse(f"function {function}", name, f"known are {KNOWN_CASTS}")
        else:
            self._check(name, range(1, 2), arguments)
        return self._cursor.check_height(Apply(function, arguments), *arguments)

    def _bound(self) -> Expression:
        self._cursor.expect("(")
        found = Var(terms.parse_variable(self._cursor, "a variable as the argument of BOUND"))
        self._cursor.expect(")")
        return Apply("bound", (found,))

    def _check(self, name: Token, arity: range, arguments: tuple[Expression, ...]) -> None:
        if len(arguments) not in arity:
            counts = " or ".join(map(str, arity))
            expected = f"{counts} argument{'' if counts == '1' else 's'} for {name.key or name.text}"
            raise self._cursor.syntax_error(f"{expected}, not {len(arguments)}", name)

    def arguments(self, distinct: bool = False) -> tuple[Expression, ...]:
        """Parse expressions in parentheses, after DISTINCT if it is allowed."""
        cursor = self._cursor
        cursor.expect("(")
        if distinct:
            cursor.expect("DISTINCT")
        elif cursor.accept(")"):
            return ()
        found = [self._inner(cursor)]
        while cursor.accept(","):
            found.append(self._inner(cursor))
        cursor.expect(")")
        return tuple(found)

    def _aggregate(self, name: Token) -> Expression:
        cursor = self._cursor
        cursor.record_span(f"aggregate {name.key}", name)
        outside, cursor.aggregates = cursor.aggregates, None
        if outside is None:
            raise cursor.syntax_error(
                "no aggregate, as they stand in SELECT, HAVING and ORDER BY and not in one another", name
            )
        cursor.expect("(")
        distinct = bool(cursor.accept("DISTINCT"))
        argument = None if name.key == "COUNT" and cursor.accept("*") else self._inner(cursor)
        separator = self._separator() if name.key == "GROUP_CONCAT" else " "
        cursor.expect(")")
        cursor.aggregates = outside
        found = cursor.check_height(Aggregate(name.key.lower(), argument, distinct, separator), argument)
        return Var(outside.setdefault(found, f".agg{len(outside)}"))

    def _separator(self) -> str:
        if not self._cursor.accept(";"):
            return " "
        self._cursor.expect("SEPARATOR")
        self._cursor.expect("=")
        return terms.parse_string(self._cursor)


_COMPARISONS = ("=", "!=", "<", ">", "<=", ">=")
_EXPECTED = "an expression: a variable, a literal, an IRI, a function or `(`"


def parse_constraint(cursor: Cursor) -> Expression:
    """Parse what FILTER, HAVING and ORDER BY take: an expression in parentheses, or a call."""
    if cursor.at("("):
        return parse_bracketed(cursor)
    called = parse_call(cursor)
    if called is None:
        raise cursor.syntax_error("`(` or a function")
    return called


def parse_bracketed(cursor: Cursor) -> Expression:
    cursor.expect("(")
    inner = parse_expression(cursor)
    cursor.expect(")")
    return inner


def parse_call(cursor: Cursor) -> Expression | None:
    """Parse a call; None if none comes next."""
    cursor.count_term()
    return CallParser(cursor, parse_expression).parsed()


def parse_expression(cursor: Cursor) -> Expression:
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
        cursor.split_token()
    if op := cursor.accept(*_COMPARISONS):
        return _apply(cursor, op.key, left, _sum(cursor))
    if cursor.accept("IN"):
        return _apply(cursor, "in", left, *CallParser(cursor, parse_expression).arguments())
    if cursor.at("NOT") and cursor.following.key == "IN":
        cursor.take()
        cursor.take()
        return _apply(cursor, "not in", left, *CallParser(cursor, parse_expression).arguments())
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
    if cursor.at("!", "+", "-") and not terms.at_literal(cursor):
        return _apply(cursor, cursor.take().key, _primary(cursor))
    return _primary(cursor)


def _primary(cursor: Cursor) -> Expression:
    if cursor.accept("("):
        inner = parse_expression(cursor)
        cursor.expect(")")
        return inner
    if (called := parse_call(cursor)) is not None:
        return called
    if cursor.token.kind == "variable":
        return Var(cursor.take().text[1:])
    if terms.at_literal(cursor):
        return terms.parse_literal_term(cursor)
    if terms.at_iri(cursor):
        return terms.parse_iri(cursor)
    if cursor.at("<<("):
        return terms.skip_triple(cursor)
    raise cursor.syntax_error(_EXPECTED)


def _apply(cursor: Cursor, op: str, *args: Expression) -> Expression:
    return cursor.check_height(Apply(op, args), *args)
