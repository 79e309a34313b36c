"""Grammar of terms, property paths and triples, for patterns and for CONSTRUCT templates.

Terms become the canonical N-Triples text in which data are stored. Blank nodes of a query become variables whose name
starts with `_:`, which no query text can project or use in a filter.
"""

from __future__ import annotations

import re
from typing import Final

import pyoxigraph as ox

from triplewire.model.terms import RDF, TW, XSD
from triplewire.sparql import algebra
from triplewire.sparql.algebra import Const, Node, Path, Pattern, Var
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.lexer import Token

PATTERNS: Final = 256
"""Triple patterns and steps of paths of one query. Each is a self-join of the quads table."""

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


def parse_iri_text(cursor: Cursor) -> str:
    """Parse an IRI and return it without brackets: written out, relative to the base, or with a prefix."""
    token = cursor.take()
    if token.kind == "iri":
        return cursor.iris.get((token.text, cursor.base)) or _absolute(cursor, token)
    if token.kind != "name":
        raise cursor.syntax_error("an IRI", token)
    prefix, local = token.text.split(":", 1)
    if prefix not in cursor.prefixes:
        raise cursor.syntax_error(f"a declared prefix (`PREFIX {prefix}: <...>` is missing)", token)
    return cursor.prefixes[prefix] + (re.sub(r"\\(.)", r"\1", local) if "\\" in local else local)


def parse_iri(cursor: Cursor) -> Const:
    return Const(f"<{parse_iri_text(cursor)}>")


def parse_variable(cursor: Cursor, expected: str = "a variable") -> str:
    return cursor.expect_kind("variable", expected).text[1:]


def parse_variable_or_iri(cursor: Cursor, after: str) -> Node:
    if cursor.token.kind == "variable":
        return Var(cursor.take().text[1:])
    if not at_iri(cursor):
        raise cursor.syntax_error(f"an IRI or a variable after {after}")
    return parse_iri(cursor)


def at_literal(cursor: Cursor) -> bool:
    token = cursor.token
    if token.kind in _LITERALS or token.key in ("TRUE", "FALSE"):
        return True
    return token.key in ("+", "-") and cursor.following.kind in _NUMBERS and token.end == cursor.following.offset


def parse_literal_term(cursor: Cursor) -> Const:
    """Parse a literal. `at_literal` must hold."""
    token = cursor.take()
    if token.kind == "string":
        return _string_literal(cursor, token)
    if token.kind == "word":
        return Const(f'"{token.text.lower()}"^^<{XSD}boolean>')
    sign = token.text if token.kind == "mark" else ""
    digits = cursor.take() if sign else token
    return Const(f'"{sign}{digits.text}"^^<{_NUMBERS[digits.kind]}>')


def parse_string(cursor: Cursor) -> str:
    """Parse a string and return it without its quotes and escapes."""
    token = cursor.expect_kind("string", "a string in quotes")
    width = 3 if len(token.text) > 5 and token.text.startswith(('"""', "'''")) else 1
    return _unescaped(cursor, token, token.text[width:-width])


def skip_triple(cursor: Cursor) -> Node:
    """Postpone the refusal of a triple term, reified triple or annotation, and return a placeholder."""
    cursor.refuse("triple term")
    depth = 0
    while True:
        token = cursor.take()
        depth += (token.key in ("<<", "<<(", "{|")) - (token.key in (">>", ")>>", "|}"))
        if token.kind == "end":
            raise cursor.syntax_error("the end of the triple term", token)
        if depth == 0:
            return Var(f"_:.{cursor.fresh()}")


def _string_literal(cursor: Cursor, token: Token) -> Const:
    width = 3 if len(token.text) > 5 and token.text.startswith(('"""', "'''")) else 1
    lexical = _unescaped(cursor, token, token.text[width:-width])
    if cursor.token.kind == "language":
        return _tagged(cursor, lexical, cursor.take())
    if cursor.accept("^^"):
        return _typed(cursor, lexical, cursor.token)
    return Const(str(ox.Literal(lexical)))


def _typed(cursor: Cursor, lexical: str, datatype: Token) -> Const:
    try:
        return Const(str(ox.Literal(lexical, datatype=ox.NamedNode(parse_iri_text(cursor)))))
    except ValueError:
        raise cursor.syntax_error("the IRI of a datatype", datatype) from None


def _tagged(cursor: Cursor, lexical: str, tag: Token) -> Const:
    language, _, direction = tag.text[1:].partition("--")
    if direction:
        cursor.refuse("base direction", tag)
    try:
        return Const(str(ox.Literal(lexical, language=language)))
    except ValueError:
        raise cursor.syntax_error("a language tag of BCP 47", tag) from None


def _unescaped(cursor: Cursor, token: Token, text: str) -> str:
    def replace(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        if code and int(code, 16) < 0x110000 and not 0xD800 <= int(code, 16) < 0xE000:
            return chr(int(code, 16))
        if found[3] not in _SHORT:
            raise cursor.syntax_error("a known escape after `\\`", token)
        return _SHORT[found[3]]

    return _ESCAPE.sub(replace, text) if "\\" in text else text


def _absolute(cursor: Cursor, token: Token) -> str:
    """Resolve and check an IRI by the library that parses the data, so that both agree on what an IRI is."""
    line = f"{token.text} <x:p> <x:o> .".encode()
    try:
        found = next(iter(ox.parse(line, format=ox.RdfFormat.TURTLE, base_iri=cursor.base)))
    except (SyntaxError, ValueError):
        raise cursor.syntax_error("an absolute IRI, or a `BASE` to resolve it", token) from None
    return cursor.iris.setdefault((token.text, cursor.base), str(found.subject)[1:-1])


_HEADERS = f"<{TW}"
_EXPECTED_PREDICATE = "a predicate: an IRI, `a`, a variable or a path"


def at_path(cursor: Cursor) -> bool:
    return at_iri(cursor) or cursor.at("^", "!", "(") or cursor.token.text == "a"


def parse_path(cursor: Cursor) -> Path:
    with cursor.nested():
        found = [_path_sequence(cursor)]
        while bar := cursor.accept("|"):
            cursor.record_span("path `|`", bar)
            found.append(_path_sequence(cursor))
    return found[0] if len(found) == 1 else algebra.Either(tuple(found))


def count_path_steps(path: Path) -> int:
    """Count the steps along predicates that are written in a path."""
    match path:
        case algebra.Chain(paths) | algebra.Either(paths):
            return sum(map(count_path_steps, paths))
        case algebra.Inverse(inner) | algebra.Repeat(inner):
            return count_path_steps(inner)
    return 1


def parse_predicate(cursor: Cursor) -> Const:
    """Parse a predicate: an IRI or `a`."""
    if cursor.token.text == "a":
        cursor.take()
        return RDF_TYPE
    if not at_iri(cursor):
        raise cursor.syntax_error(_EXPECTED_PREDICATE)
    token, found = cursor.token, parse_iri(cursor)
    if found.term.startswith(_HEADERS):
        cursor.record_span(f"predicate {found.term}", token)
    return found


def _path_sequence(cursor: Cursor) -> Path:
    found = [_directed(cursor)]
    while cursor.accept("/"):
        found.append(_directed(cursor))
    return found[0] if len(found) == 1 else algebra.Chain(tuple(found))


def _directed(cursor: Cursor) -> Path:
    return algebra.Inverse(_path_repeated(cursor)) if cursor.accept("^") else _path_repeated(cursor)


def _path_repeated(cursor: Cursor) -> Path:
    found = _path_primary(cursor)
    if not cursor.at("?", "*", "+") or at_literal(cursor):
        return found
    cursor.record_span(f"path `{cursor.token.key}`")
    sign = cursor.take().key
    return algebra.Repeat(found, 1 if sign == "+" else 0, once=sign == "?")


def _path_primary(cursor: Cursor) -> Path:
    if bang := cursor.accept("!"):
        cursor.record_span("path `!`", bang)
        return _negated(cursor)
    if not cursor.accept("("):
        return algebra.Link(parse_predicate(cursor))
    found = parse_path(cursor)
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
    return algebra.Negated(None if backward and not forward else tuple(forward), tuple(backward) if backward else None)


def _excluded(cursor: Cursor, forward: list[Const], backward: list[Const]) -> None:
    (backward if cursor.accept("^") else forward).append(parse_predicate(cursor))


class TripleParser:
    """A collector of triples in reading order. `block` identifies the basic graph pattern: a blank node label belongs
    to one.

    A template has no block: its labels are its own, and it has no paths.
    """

    def __init__(self, cursor: Cursor, block: int | None) -> None:
        self._cursor = cursor
        self._block = block
        self.found: list[Pattern | algebra.Reach] = []

    def statement(self, expected: str) -> None:
        """Parse one subject with its properties."""
        empty = self._cursor.following.key in ("]", ")")
        complete = self._cursor.at("<<") or (self._cursor.at("[", "(") and not empty)
        subject = self._node(expected)
        if not complete or self._at_verb():
            self._properties(subject)

    def _properties(self, subject: Node) -> None:
        while True:
            verb = self._verb()
            self._object(subject, verb)
            while self._cursor.accept(","):
                self._object(subject, verb)
            more = False
            while self._cursor.accept(";"):
                more = True
            if not more or not self._at_verb():
                return

    def _at_verb(self) -> bool:
        return self._cursor.token.kind == "variable" or at_path(self._cursor)

    def _verb(self) -> Var | Const | Path:
        cursor = self._cursor
        if cursor.token.kind == "variable":
            return Var(cursor.take().text[1:])
        found = algebra.Link(parse_predicate(cursor)) if self._block is None else parse_path(cursor)
        return found.predicate if isinstance(found, algebra.Link) else found

    def _object(self, subject: Node, verb: Var | Const | Path) -> None:
        # reserved before the object's own triples, so that patterns are in reading order
        token, index = self._cursor.token, len(self.found)
        found = self._node("an object")
        self.found.insert(index, _triple(subject, verb, found))
        weight = 1 if isinstance(verb, Var | Const) else count_path_steps(verb)
        self._cursor.count("triple patterns", PATTERNS, weight, token)
        while self._cursor.at("{|", "~"):
            self._annotation()

    def _annotation(self) -> None:
        if self._cursor.at("{|"):
            skip_triple(self._cursor)
            return
        self._cursor.refuse("triple term")
        self._cursor.take()
        if self._cursor.token.kind in ("variable", "blank", "iri", "name"):
            self._node("a name")

    def _node(self, expected: str) -> Node:
        cursor = self._cursor
        if cursor.token.kind == "variable":
            return Var(cursor.take().text[1:])
        if cursor.token.kind == "blank":
            return self._labelled()
        if at_iri(cursor):
            return parse_iri(cursor)
        if at_literal(cursor):
            return parse_literal_term(cursor)
        if cursor.at("["):
            return self._anonymous()
        if cursor.at("("):
            return self._collection()
        if cursor.at("<<", "<<("):
            return skip_triple(cursor)
        raise cursor.syntax_error(expected)

    def _labelled(self) -> Var:
        token = self._cursor.take()
        if self._block is not None and self._cursor.blocks.setdefault(token.text, self._block) != self._block:
            raise self._cursor.syntax_error("a blank node label that was not used in another group", token)
        return Var(token.text)

    def _new(self) -> Var:
        return Var(f"_:.{self._cursor.fresh()}")

    def _anonymous(self) -> Var:
        self._cursor.expect("[")
        node = self._new()
        if not self._cursor.at("]"):
            with self._cursor.nested():
                self._properties(node)
        self._cursor.expect("]")
        return node

    def _collection(self) -> Node:
        self._cursor.expect("(")
        if self._cursor.accept(")"):
            return RDF_NIL
        first = cell = self._new()
        while True:
            with self._cursor.nested():
                self._object(cell, RDF_FIRST)
            if self._cursor.accept(")"):
                self._rest(cell, RDF_NIL)
                return first
            following = self._new()
            self._rest(cell, following)
            cell = following

    def _rest(self, cell: Var, following: Node) -> None:
        self._cursor.count("triple patterns", PATTERNS)
        self.found.append(Pattern(cell, RDF_REST, following))


def _triple(subject: Node, verb: Var | Const | Path, found: Node) -> Pattern | algebra.Reach:
    if isinstance(verb, Var | Const):
        return Pattern(subject, verb, found)
    return algebra.Reach(subject, verb, found)
