"""Terms of a query as the canonical N-Triples text in which data are stored."""

from __future__ import annotations

import re

import pyoxigraph as ox

from triplewire.model.terms import RDF, XSD
from triplewire.sparql.algebra import Const
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.tokens import Token

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_SHORT = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_NUMBERS = {"integer": XSD + "integer", "decimal": XSD + "decimal", "double": XSD + "double"}

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
        return _absolute(cursor, token, _unescaped(cursor, token, token.text[1:-1]))
    if token.kind != "name":
        raise cursor.wrong("an IRI", token)
    prefix, local = token.text.split(":", 1)
    if prefix not in cursor.prefixes:
        raise cursor.wrong(f"a declared prefix (`PREFIX {prefix}: <...>` is missing)", token)
    return cursor.prefixes[prefix] + re.sub(r"\\(.)", r"\1", local)


def iri(cursor: Cursor) -> Const:
    return Const(f"<{address(cursor)}>")


def at_literal(cursor: Cursor) -> bool:
    signed = cursor.at("+", "-") and cursor.following.kind in _NUMBERS and cursor.token.end == cursor.following.offset
    return signed or cursor.token.kind in ("string", *_NUMBERS) or cursor.at("TRUE", "FALSE")


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


def _string(cursor: Cursor, token: Token) -> Const:
    width = 3 if token.text.startswith(('"""', "'''")) else 1
    lexical = _unescaped(cursor, token, token.text[width:-width])
    if cursor.token.kind == "language":
        return _tagged(cursor, lexical, cursor.take())
    if cursor.accept("^^"):
        return Const(str(ox.Literal(lexical, datatype=ox.NamedNode(address(cursor)))))
    return Const(str(ox.Literal(lexical)))


def _tagged(cursor: Cursor, lexical: str, tag: Token) -> Const:
    try:
        return Const(str(ox.Literal(lexical, language=tag.text[1:])))
    except ValueError:
        raise cursor.wrong("a language tag of BCP 47", tag) from None


def _unescaped(cursor: Cursor, token: Token, text: str) -> str:
    def replace(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        if code and int(code, 16) < 0x110000 and not 0xD800 <= int(code, 16) < 0xE000:
            return chr(int(code, 16))
        if found[3] not in _SHORT or token.kind == "iri":
            raise cursor.wrong("a known escape after `\\`", token)
        return _SHORT[found[3]]

    return _ESCAPE.sub(replace, text) if "\\" in text else text


def _absolute(cursor: Cursor, token: Token, reference: str) -> str:
    """Resolved and checked by the library that reads the data, so that both agree on what an IRI is."""
    line = f"<{reference}> <x:p> <x:o> .".encode()
    try:
        found = next(iter(ox.parse(line, format=ox.RdfFormat.TURTLE, base_iri=cursor.base)))
    except (SyntaxError, ValueError):
        raise cursor.wrong("an absolute IRI, or a `BASE` to resolve it", token) from None
    return str(found.subject)[1:-1]
