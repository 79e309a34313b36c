"""Triples with their abbreviations: of patterns, with paths, and of templates, without.

Blank nodes in a query are variables without a name; here they become variables whose name starts with `_:`,
which no query text can project or use in a filter.
"""

from __future__ import annotations

from triplewire.config import limits
from triplewire.sparql.algebra import Const, Link, Node, Path, Pattern, Reach, Var
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.paths import at_path, path, predicate, steps
from triplewire.sparql.syntax.terms import (
    RDF_FIRST,
    RDF_NIL,
    RDF_REST,
    at_iri,
    at_literal,
    iri,
    literal,
    skip_triple,
)


class Triples:
    """Collects triples in reading order. `block` tells basic graph patterns apart: a label belongs to one.

    A template has no block: its labels are its own, and it has no paths.
    """

    def __init__(self, cursor: Cursor, block: int | None) -> None:
        self._cursor = cursor
        self._block = block
        self.found: list[Pattern | Reach] = []

    def statement(self, expected: str) -> None:
        """One subject with its properties."""
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
        found = Link(predicate(cursor)) if self._block is None else path(cursor)
        return found.predicate if isinstance(found, Link) else found

    def _object(self, subject: Node, verb: Var | Const | Path) -> None:
        # the place in the list is taken before the object's own triples, so that patterns are in reading order
        token, index = self._cursor.token, len(self.found)
        found = self._node("an object")
        self.found.insert(index, _triple(subject, verb, found))
        weight = 1 if isinstance(verb, Var | Const) else steps(verb)
        self._cursor.count("triple patterns", limits.PATTERNS, weight, token)
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
            return iri(cursor)
        if at_literal(cursor):
            return literal(cursor)
        if cursor.at("["):
            return self._anonymous()
        if cursor.at("("):
            return self._collection()
        if cursor.at("<<", "<<("):
            return skip_triple(cursor)
        raise cursor.wrong(expected)

    def _labelled(self) -> Var:
        token = self._cursor.take()
        if self._block is not None and self._cursor.blocks.setdefault(token.text, self._block) != self._block:
            raise self._cursor.wrong("a blank node label that was not used in another group", token)
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
        self._cursor.count("triple patterns", limits.PATTERNS)
        self.found.append(Pattern(cell, RDF_REST, following))


def _triple(subject: Node, verb: Var | Const | Path, found: Node) -> Pattern | Reach:
    if isinstance(verb, Var | Const):
        return Pattern(subject, verb, found)
    return Reach(subject, verb, found)
