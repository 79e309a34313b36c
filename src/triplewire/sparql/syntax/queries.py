"""Queries: prologue, form, pattern and solution modifiers."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from triplewire.config import limits
from triplewire.errors import BodyTooLarge
from triplewire.sparql.algebra import Pattern, Var
from triplewire.sparql.conjunctions import Conjunction
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.expressions import expression
from triplewire.sparql.syntax.patterns import group
from triplewire.sparql.syntax.terms import address

_UPDATES = ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH")
_MODIFIERS = ("GROUP", "HAVING", "ORDER", "VALUES")


@lru_cache(maxsize=512)
def parse(text: str) -> Conjunction:
    """The algebra of a query.

    Raises SparqlSyntax for text that is not SPARQL, Unsupported for SPARQL that we do not run, both with the
    place, and BodyTooLarge over the limit.
    """
    if len(text.encode(errors="replace")) > limits.QUERY_BYTES:
        raise BodyTooLarge("the SPARQL text", limits.QUERY_BYTES)
    cursor = Cursor(text)
    _prologue(cursor)
    query = _query(cursor)
    if cursor.token.kind != "end":
        raise cursor.wrong("the end of the query")
    return query


def _prologue(cursor: Cursor) -> None:
    while keyword := cursor.accept("PREFIX", "BASE"):
        if keyword.word == "BASE":
            cursor.base = _reference(cursor)
            continue
        name = cursor.expect_kind("name", "a prefix that ends in `:`")
        if not name.text.endswith(":") or name.text.count(":") != 1:
            raise cursor.wrong("a prefix that ends in `:`", name)
        cursor.prefixes[name.text[:-1]] = _reference(cursor)


def _reference(cursor: Cursor) -> str:
    if cursor.token.kind != "iri":
        raise cursor.wrong("an IRI in angle brackets")
    return address(cursor)


def _query(cursor: Cursor) -> Conjunction:
    if cursor.at("CONSTRUCT", "DESCRIBE"):
        raise cursor.unsupported(cursor.token.word)
    if cursor.at(*_UPDATES):
        raise cursor.unsupported("SPARQL Update", hint="events are published, not updated")
    if cursor.expect("SELECT", "ASK").word == "ASK":
        return _where(cursor, "ask", (), False)
    distinct = bool(cursor.accept("DISTINCT"))
    if not distinct:
        cursor.accept("REDUCED")
    return _where(cursor, "select", _projection(cursor), distinct)


def _projection(cursor: Cursor) -> tuple[str, ...] | None:
    """The names to select; None for `*`."""
    if cursor.accept("*"):
        return None
    names: list[str] = []
    while cursor.token.kind == "variable" or cursor.at("("):
        if cursor.at("("):
            _refuse_expression(cursor)
        token = cursor.take()
        if token.text[1:] not in names:
            names.append(token.text[1:])
    if not names:
        raise cursor.wrong("`*` or a variable")
    return tuple(names)


def _refuse_expression(cursor: Cursor) -> None:
    """Parses the expression first, because what is wrong inside it is the better message."""
    opening = cursor.take()
    expression(cursor)
    raise cursor.unsupported("SELECT expression", opening)


def _where(
    cursor: Cursor, form: Literal["select", "ask"], projection: tuple[str, ...] | None, distinct: bool
) -> Conjunction:
    if cursor.at("FROM"):
        raise cursor.unsupported("FROM")
    cursor.accept("WHERE")
    found = group(cursor)
    limit, offset = _slice(cursor)
    names = _visible(found.patterns) if projection is None else projection
    return Conjunction(form, found.patterns, found.filters, names, distinct, limit, offset)


def _slice(cursor: Cursor) -> tuple[int | None, int]:
    given: dict[str, int] = {}
    while True:
        if cursor.at(*_MODIFIERS):
            word = cursor.token.word
            raise cursor.unsupported(f"{word} BY" if word in ("GROUP", "ORDER") else word)
        if not cursor.at("LIMIT", "OFFSET") or cursor.token.word in given:
            return given.get("LIMIT"), given.get("OFFSET", 0)
        word = cursor.take().word
        given[word] = int(cursor.expect_kind("integer", "a whole number").text)


def _visible(patterns: tuple[Pattern, ...]) -> tuple[str, ...]:
    """What `*` stands for: every variable of the patterns that has a name, in reading order."""
    nodes = [node for each in patterns for node in (each.graph, each.subject, each.predicate, each.object)]
    names = [node.name for node in nodes if isinstance(node, Var) and not node.name.startswith("_:")]
    return tuple(dict.fromkeys(names))
