"""VALUES: solutions that a query states."""

from __future__ import annotations

from triplewire.sparql.algebra import Values
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.terms import at_iri, at_literal, iri, literal, skip_triple, variable


def values(cursor: Cursor) -> Values:
    """What follows the word VALUES."""
    if cursor.token.kind == "variable":
        name = variable(cursor)
        return Values((name,), tuple((each,) for each in _cells(cursor, "{", "}")))
    names = _names(cursor)
    rows: list[tuple[str | None, ...]] = []
    cursor.expect("{")
    while not cursor.accept("}"):
        opening = cursor.token
        rows.append(_cells(cursor, "(", ")"))
        if len(rows[-1]) != len(names):
            raise cursor.wrong(f"a row of {len(names)} values, not {len(rows[-1])}", opening)
    return Values(names, tuple(rows))


def _names(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("(")
    names: dict[str, None] = {}
    while not cursor.accept(")"):
        if cursor.token.text[1:] in names:
            raise cursor.wrong("a variable that VALUES does not name before")
        names[variable(cursor, "a variable or `)`")] = None
    return tuple(names)


def _cells(cursor: Cursor, opening: str, closing: str) -> tuple[str | None, ...]:
    cursor.expect(opening)
    found: list[str | None] = []
    while not cursor.accept(closing):
        found.append(_cell(cursor, closing))
    return tuple(found)


def _cell(cursor: Cursor, closing: str) -> str | None:
    if at_iri(cursor):
        return iri(cursor).term
    if at_literal(cursor):
        return literal(cursor).term
    if cursor.at("<<("):
        skip_triple(cursor)
        return None
    if not cursor.accept("UNDEF"):
        raise cursor.wrong(f"an IRI, a literal, UNDEF or `{closing}`")
    return None
