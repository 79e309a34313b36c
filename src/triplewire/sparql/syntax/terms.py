"""Terms of a query as the canonical N-Triples text in which data are stored."""

from __future__ import annotations

import re

import pyoxigraph as ox

from triplewire.model.terms import RDF, XSD
from triplewire.sparql.algebra import Const, Node, Var
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.tokens import Token

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_SHORT = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_NUMBERS = {"integer": XSD + "integer", "decimal": XSD + "decimal", "double": XSD + "double"}
_LITERALS = frozenset(("string", *_NUMBERS))

RDF_NIL = Const(f"<{RDF}nil>")
RDF_FIRST = Const(f"<{RDF}first>")
RDF_REST = Const(f"<{RDF}rest>")
RDF_TYPE = Const(f"<{RDF}type>")


def at_iri(cursor: Cursor) -> bool:
    return cursor.token.kind in ("iri", "name")


def address(cursor: Cursor) -> str:
    """The IRI that comes next, without brackets: written out, relative to the base, or with a prefix."""
    token = cursor.take()
    if token.kind == "iri":
        return cursor.addresses.get((token.text, cursor.base)) or _absolute(cursor, token)
    if token.kind != "name":
        raise cursor.wrong("an IRI", token)
    prefix, local = token.text.split(":", 1)
    if prefix not in cursor.prefixes:
        raise cursor.wrong(f"a declared prefix (`PREFIX {prefix}: <...>` is missing)", token)
    return cursor.prefixes[prefix] + (re.sub(r"\\(.)", r"\1", local) if "\\" in local else local)


def iri(cursor: Cursor) -> Const:
    return Const(f"<{address(cursor)}>")


def variable(cursor: Cursor, expected: str = "a variable") -> str:
    """The name of the variable that comes next."""
    return cursor.expect_kind("variable", expected).text[1:]


def variable_or_iri(cursor: Cursor, after: str) -> Node:
    if cursor.token.kind == "variable":
        return Var(cursor.take().text[1:])
    if not at_iri(cursor):
        raise cursor.wrong(f"an IRI or a variable after {after}")
    return iri(cursor)


def at_literal(cursor: Cursor) -> bool:
    token = cursor.token
    if token.kind in _LITERALS or token.key in ("TRUE", "FALSE"):
        return True
    return token.key in ("+", "-") and cursor.following.kind in _NUMBERS and token.end == cursor.following.offset


def literal(cursor: Cursor) -> Const:
    """The literal that comes next. `at_literal` must hold."""
    token = cursor.take()
    if token.kind == "string":
        return _string(cursor, token)
    if token.kind == "word":
        return Const(f'"{token.text.lower()}"^^<{XSD}boolean>')
    sign = token.text if token.kind == "mark" else ""
    digits = cursor.take() if sign else token
    return Const(f'"{sign}{digits.text}"^^<{_NUMBERS[digits.kind]}>')


def string(cursor: Cursor) -> str:
    """The string that comes next, without its quotes and escapes."""
    token = cursor.expect_kind("string", "a string in quotes")
    width = 3 if len(token.text) > 5 and token.text.startswith(('"""', "'''")) else 1
    return _unescaped(cursor, token, token.text[width:-width])


def skip_triple(cursor: Cursor) -> Node:
    """Refuses the triple term, reified triple or annotation that comes next, and gives something in its place."""
    cursor.refuse("triple term")
    depth = 0
    while True:
        token = cursor.take()
        depth += (token.key in ("<<", "<<(", "{|")) - (token.key in (">>", ")>>", "|}"))
        if token.kind == "end":
            raise cursor.wrong("the end of the triple term", token)
        if depth == 0:
            return Var(f"_:.{cursor.fresh()}")


def _string(cursor: Cursor, token: Token) -> Const:
    width = 3 if len(token.text) > 5 and token.text.startswith(('"""', "'''")) else 1
    lexical = _unescaped(cursor, token, token.text[width:-width])
    if cursor.token.kind == "language":
        return _tagged(cursor, lexical, cursor.take())
    if cursor.accept("^^"):
        return _typed(cursor, lexical, cursor.token)
    return Const(str(ox.Literal(lexical)))


def _typed(cursor: Cursor, lexical: str, datatype: Token) -> Const:
    try:
        return Const(str(ox.Literal(lexical, datatype=ox.NamedNode(address(cursor)))))
    except ValueError:
        raise cursor.wrong("the IRI of a datatype", datatype) from None


def _tagged(cursor: Cursor, lexical: str, tag: Token) -> Const:
    language, _, direction = tag.text[1:].partition("--")
    if direction:
        cursor.refuse("base direction", tag)
    try:
        return Const(str(ox.Literal(lexical, language=language)))
    except ValueError:
        raise cursor.wrong("a language tag of BCP 47", tag) from None


def _unescaped(cursor: Cursor, token: Token, text: str) -> str:
    def replace(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        if code and int(code, 16) < 0x110000 and not 0xD800 <= int(code, 16) < 0xE000:
            return chr(int(code, 16))
        if found[3] not in _SHORT:
            raise cursor.wrong("a known escape after `\\`", token)
        return _SHORT[found[3]]

    return _ESCAPE.sub(replace, text) if "\\" in text else text


def _absolute(cursor: Cursor, token: Token) -> str:
    """Resolved and checked by the library that reads the data, so that both agree on what an IRI is."""
    line = f"{token.text} <x:p> <x:o> .".encode()
    try:
        found = next(iter(ox.parse(line, format=ox.RdfFormat.TURTLE, base_iri=cursor.base)))
    except (SyntaxError, ValueError):
        raise cursor.wrong("an absolute IRI, or a `BASE` to resolve it", token) from None
    return cursor.addresses.setdefault((token.text, cursor.base), str(found.subject)[1:-1])
