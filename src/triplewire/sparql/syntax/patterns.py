"""Graph patterns: groups, triples with their abbreviations, GRAPH and FILTER.

Blank nodes in a query are variables without a name; here they become variables whose name starts with `_:`,
which no query text can project or use in a filter.
"""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.config import limits
from triplewire.errors import Unsupported
from triplewire.sparql.algebra import UNBOUND, Apply, Expression, Node, Pattern, Var
from triplewire.sparql.syntax.cursor import Cursor
from triplewire.sparql.syntax.expressions import constraint
from triplewire.sparql.syntax.terms import RDF_FIRST, RDF_NIL, RDF_REST, RDF_TYPE, at_iri, at_literal, iri, literal

_REFUSED = ("OPTIONAL", "MINUS", "BIND", "VALUES", "SERVICE")
_PATH_OPERATORS = ("/", "|", "^", "*", "+", "?")


@dataclass(frozen=True)
class Group:
    """All patterns of a group and of the groups inside it; filters refer only to variables in their own scope."""

    patterns: tuple[Pattern, ...]
    filters: tuple[Expression, ...]


def group(cursor: Cursor, graph: Node | None = None) -> Group:
    """A group in braces, inside `GRAPH graph` if one is given."""
    cursor.expect("{")
    if cursor.at("SELECT"):
        raise cursor.unsupported("sub-SELECT")
    builder = _Builder(cursor, graph)
    with cursor.nested():
        while not cursor.accept("}"):
            builder.element()
    if cursor.at("UNION"):
        raise cursor.unsupported("UNION")
    return builder.group()


class _Builder:
    """Collects the elements of one group."""

    def __init__(self, cursor: Cursor, graph: Node | None) -> None:
        self._cursor = cursor
        self._graph = graph
        self._block = cursor.fresh()
        self._filters: list[Expression] = []
        self._inner: list[Expression] = []
        self.patterns: list[Pattern] = []

    def group(self) -> Group:
        seen = {node.name for pattern in self.patterns for node in _nodes(pattern) if isinstance(node, Var)}
        scoped = [_scoped(each, seen) for each in self._filters]
        return Group(tuple(self.patterns), (*self._inner, *scoped))

    def element(self) -> None:
        cursor = self._cursor
        if cursor.at(*_REFUSED):
            raise cursor.unsupported(cursor.token.word)
        if cursor.accept("FILTER"):
            self._filters.append(constraint(cursor))
            cursor.accept(".")
        elif cursor.at("GRAPH", "{"):
            self._nested()
            cursor.accept(".")
        else:
            self._triples()

    def _nested(self) -> None:
        graph = self._graph
        if self._cursor.accept("GRAPH"):
            if graph is not None:
                raise self._cursor.unsupported("GRAPH inside GRAPH")
            graph = _graph_name(self._cursor)
        opening = self._cursor.token
        found = group(self._cursor, graph)
        if graph is not self._graph and not found.patterns:
            raise self._cursor.unsupported("GRAPH without triple patterns", opening)
        self.patterns.extend(found.patterns)
        self._inner.extend(found.filters)
        self._block = self._cursor.fresh()

    def _triples(self) -> None:
        """One subject with its properties, and the dot that must part it from more triples."""
        compound = self._cursor.at("[", "(") and self._cursor.following.text not in ("]", ")")
        subject = self._node("a triple pattern, FILTER, GRAPH or `}`")
        if not (compound and self._cursor.at(".", "}")):
            self._properties(subject)
        if not self._cursor.accept(".") and not self._cursor.at("}", "FILTER", "GRAPH", "{", *_REFUSED):
            raise self._cursor.wrong("`.`, `;`, `,` or `}`")

    def _properties(self, subject: Node) -> None:
        while True:
            predicate = self._predicate()
            self._object(subject, predicate)
            while self._cursor.accept(","):
                self._object(subject, predicate)
            more = False
            while self._cursor.accept(";"):
                more = True
            if not more or not self._at_predicate():
                return

    def _at_predicate(self) -> bool:
        cursor = self._cursor
        return cursor.token.kind == "variable" or at_iri(cursor) or cursor.at("A", "^", "!", "(")

    def _predicate(self) -> Node:
        cursor = self._cursor
        if cursor.at("^", "!", "("):
            raise cursor.unsupported("property path")
        if cursor.token.kind == "variable":
            return Var(cursor.take().text[1:])
        if cursor.at("A") and cursor.token.text == "a":
            cursor.take()
            predicate = RDF_TYPE
        elif at_iri(cursor):
            predicate = iri(cursor)
        else:
            raise cursor.wrong("a predicate: an IRI, `a` or a variable")
        if cursor.at(*_PATH_OPERATORS) and not at_literal(cursor):
            raise cursor.unsupported("property path")
        return predicate

    def _object(self, subject: Node, predicate: Node) -> None:
        # the place in the list is taken before the object's own triples, so that patterns are in reading order
        place, index = self._cursor.place(), len(self.patterns)
        found = self._node("an object")
        self.patterns.insert(index, Pattern(subject, predicate, found, self._graph))
        if self._cursor.at("{|", "~"):
            raise self._cursor.unsupported("triple term")
        if len(self.patterns) > limits.PATTERNS:
            raise Unsupported(f"more than {limits.PATTERNS} triple patterns", place=place)

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
            raise cursor.unsupported("triple term")
        raise cursor.wrong(expected)

    def _labelled(self) -> Var:
        token = self._cursor.take()
        if self._cursor.blocks.setdefault(token.text, self._block) != self._block:
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
                self.patterns.append(Pattern(cell, RDF_REST, RDF_NIL, self._graph))
                return first
            following = self._new()
            self.patterns.append(Pattern(cell, RDF_REST, following, self._graph))
            cell = following


def _graph_name(cursor: Cursor) -> Node:
    if cursor.token.kind == "variable":
        return Var(cursor.take().text[1:])
    if not at_iri(cursor):
        raise cursor.wrong("an IRI or a variable after GRAPH")
    return iri(cursor)


def _nodes(pattern: Pattern) -> tuple[Node | None, ...]:
    return pattern.subject, pattern.predicate, pattern.object, pattern.graph


def _scoped(expression: Expression, seen: set[str]) -> Expression:
    if isinstance(expression, Var):
        return expression if expression.name in seen else UNBOUND
    if isinstance(expression, Apply):
        return Apply(expression.op, tuple(_scoped(each, seen) for each in expression.args))
    return expression
