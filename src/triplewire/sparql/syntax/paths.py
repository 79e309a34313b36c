"""Property paths: the steps between two nodes, by their precedence."""

from __future__ import annotations

from triplewire.model.terms import TW
from triplewire.sparql.algebra import Chain, Const, Either, Inverse, Link, Negated, Path, Repeat
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.terms import RDF_TYPE, at_iri, at_literal, iri

_HEADERS = f"<{TW}"
_EXPECTED = "a predicate: an IRI, `a`, a variable or a path"


def at_path(cursor: Cursor) -> bool:
    return at_iri(cursor) or cursor.at("^", "!", "(") or cursor.token.text == "a"


def path(cursor: Cursor) -> Path:
    """A path of any precedence."""
    with cursor.nested():
        found = [_chain(cursor)]
        while bar := cursor.accept("|"):
            cursor.mark("path `|`", bar)
            found.append(_chain(cursor))
    return found[0] if len(found) == 1 else Either(tuple(found))


def steps(path: Path) -> int:
    """How many steps along predicates are written in a path."""
    match path:
        case Chain(paths) | Either(paths):
            return sum(map(steps, paths))
        case Inverse(inner) | Repeat(inner):
            return steps(inner)
    return 1


def predicate(cursor: Cursor) -> Const:
    """A path that must be an IRI or `a`."""
    if cursor.token.text == "a":
        cursor.take()
        return RDF_TYPE
    if not at_iri(cursor):
        raise cursor.wrong(_EXPECTED)
    token, found = cursor.token, iri(cursor)
    if found.term.startswith(_HEADERS):
        cursor.mark(f"predicate {found.term}", token)
    return found


def _chain(cursor: Cursor) -> Path:
    found = [_directed(cursor)]
    while cursor.accept("/"):
        found.append(_directed(cursor))
    return found[0] if len(found) == 1 else Chain(tuple(found))


def _directed(cursor: Cursor) -> Path:
    return Inverse(_repeated(cursor)) if cursor.accept("^") else _repeated(cursor)


def _repeated(cursor: Cursor) -> Path:
    found = _primary(cursor)
    if not cursor.at("?", "*", "+") or at_literal(cursor):
        return found
    cursor.mark(f"path `{cursor.token.key}`")
    mark = cursor.take().key
    return Repeat(found, 1 if mark == "+" else 0, once=mark == "?")


def _primary(cursor: Cursor) -> Path:
    if bang := cursor.accept("!"):
        cursor.mark("path `!`", bang)
        return _negated(cursor)
    if not cursor.accept("("):
        return Link(predicate(cursor))
    found = path(cursor)
    cursor.expect(")")
    return found


def _negated(cursor: Cursor) -> Path:
    forward: list[Const] = []
    backward: list[Const] = []
    if not cursor.accept("("):
        _excluded(cursor, forward, backward)
    elif not cursor.accept(")"):
        _excluded(cursor, forward, backward)
        while cursor.accept("|"):
            _excluded(cursor, forward, backward)
        cursor.expect(")")
    return Negated(None if backward and not forward else tuple(forward), tuple(backward) if backward else None)


def _excluded(cursor: Cursor, forward: list[Const], backward: list[Const]) -> None:
    (backward if cursor.accept("^") else forward).append(predicate(cursor))
