"""Grammar of group graph patterns and VALUES, translated as section 18.2.2 of the SPARQL specification says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from triplewire.sparql import algebra
from triplewire.sparql.algebra import Expression, Operator, Pattern
from triplewire.sparql.syntax import terms
from triplewire.sparql.syntax.cursor import Cursor, ScopedOperator, visible_names
from triplewire.sparql.syntax.expressions import parse_constraint, parse_expression
from triplewire.sparql.syntax.windows import parse_window_use

QUERY_GROUPS: Final = 4_096
"""Groups in braces of one query, branches of UNION among them. Each may become a sub-query of its own."""


def parse_values(cursor: Cursor) -> algebra.Values:
    """Parse what follows the word VALUES."""
    if cursor.token.kind == "variable":
        name = terms.parse_variable(cursor)
        return algebra.Values((name,), tuple((each,) for each in _cells(cursor, "{", "}")))
    names = _value_names(cursor)
    rows: list[tuple[str | None, ...]] = []
    cursor.expect("{")
    while not cursor.accept("}"):
        opening = cursor.token
        rows.append(_cells(cursor, "(", ")"))
        if len(rows[-1]) != len(names):
            raise cursor.syntax_error(f"a row of {len(names)} values, not {len(rows[-1])}", opening)
    return algebra.Values(names, tuple(rows))


def _value_names(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("(")
    names: dict[str, None] = {}
    while not cursor.accept(")"):
        if cursor.token.text[1:] in names:
            raise cursor.syntax_error("a variable that VALUES does not name before")
        names[terms.parse_variable(cursor, "a variable or `)`")] = None
    return tuple(names)


def _cells(cursor: Cursor, opening: str, closing: str) -> tuple[str | None, ...]:
    cursor.expect(opening)
    found: list[str | None] = []
    while not cursor.accept(closing):
        found.append(_cell(cursor, closing))
    return tuple(found)


def _cell(cursor: Cursor, closing: str) -> str | None:
    if terms.at_iri(cursor):
        return terms.parse_iri(cursor).term
    if terms.at_literal(cursor):
        return terms.parse_literal_term(cursor).term
    if cursor.at("<<("):
        terms.skip_triple(cursor)
        return None
    if not cursor.accept("UNDEF"):
        raise cursor.syntax_error(f"an IRI, a literal, UNDEF or `{closing}`")
    return None


_EXPECTED = "a triple pattern, OPTIONAL, FILTER, GRAPH, another element of a group or `}`"


def parse_group(cursor: Cursor) -> ScopedOperator:
    """Parse a group in braces, or a sub-query in them."""
    opening = cursor.expect("{")
    cursor.count("groups", QUERY_GROUPS, token=opening)
    outside, cursor.aggregates = cursor.aggregates, None
    with cursor.nested():
        found = _subquery(cursor) if cursor.at("SELECT") else GroupParser(cursor).group()
    cursor.expect("}")
    cursor.aggregates = outside
    return found


def _subquery(cursor: Cursor) -> ScopedOperator:
    cursor.record_span("a sub-query")
    return cursor.rules.select(cursor)


def join_all(cursor: Cursor, parts: Sequence[Operator]) -> Operator:
    """Join operators in order, as a balanced tree, so that many are not deep; empty patterns are left out."""
    kept = [part for part in parts if part != algebra.Basic()]
    return _fold(cursor, kept, algebra.Join) if kept else algebra.Basic()


def _fold(cursor: Cursor, parts: Sequence[Operator], kind: type[algebra.Join] | type[algebra.Union]) -> Operator:
    if len(parts) == 1:
        return parts[0]
    middle = (len(parts) + 1) // 2
    halves = _fold(cursor, parts[:middle], kind), _fold(cursor, parts[middle:], kind)
    return cursor.check_height(kind(*halves), *halves)


class GroupParser:
    """A collector of the elements of one group."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._parts: list[Operator] = []
        self._filters: list[Expression] = []
        self._names: dict[str, None] = {}
        self._triples = terms.TripleParser(cursor, cursor.fresh())
        self._seen = 0
        self._kinds: dict[str, Callable[[], None]] = {
            "OPTIONAL": self._optional,
            "{": self._union,
            "GRAPH": self._graph,
            "BIND": self._bind,
            "VALUES": self._values,
            "MINUS": self._minus,
            "SERVICE": self._service,
        }
        if cursor.windows is not None:
            self._kinds["WINDOW"] = self._window

    def group(self) -> ScopedOperator:
        cursor = self._cursor
        while not cursor.at("}"):
            if kind := self._kinds.get(cursor.token.key):
                cursor.record_span(cursor.token.key)
                self._end_triples()
                kind()
                cursor.accept(".")
            elif cursor.accept("FILTER"):
                self._filters.append(parse_constraint(cursor))
                cursor.accept(".")
            else:
                self._statement()
        bare, conditions = self._so_far(), tuple(self._filters)
        whole = cursor.check_height(algebra.Filter(bare, conditions), bare, *conditions) if conditions else bare
        return ScopedOperator(whole, tuple(self._names), bare, conditions)

    def _statement(self) -> None:
        """Parse one subject's triples, and the dot that must separate them from more."""
        cursor = self._cursor
        self._triples.statement(_EXPECTED)
        for each in self._triples.found[self._seen :]:
            predicate = each.predicate if isinstance(each, Pattern) else None
            self._show(visible_names((each.subject, predicate, each.object)))
        self._seen = len(self._triples.found)
        if not cursor.accept(".") and not cursor.at("}", "FILTER", *self._kinds):
            raise cursor.syntax_error("`.`, `;`, `,` or `}`")

    def _show(self, names: Iterable[str]) -> None:
        self._names.update(dict.fromkeys(names))

    def _end_triples(self) -> None:
        """Group patterns into basic graph patterns, with paths between them."""
        run: list[Pattern] = []
        for each in self._triples.found:
            if isinstance(each, Pattern):
                run.append(each)
                continue
            self._parts += [algebra.Basic(tuple(run)), each]
            run = []
        self._parts.append(algebra.Basic(tuple(run)))
        self._triples = terms.TripleParser(self._cursor, self._cursor.fresh())
        self._seen = 0

    def _so_far(self) -> Operator:
        self._end_triples()
        return join_all(self._cursor, self._parts)

    def _replace(self, made: Operator, *below: object) -> None:
        self._parts = [self._cursor.check_height(made, *below)]

    def _optional(self) -> None:
        self._cursor.take()
        left, inner = self._so_far(), parse_group(self._cursor)
        self._replace(algebra.LeftJoin(left, inner.bare, inner.conditions), left, inner.bare, *inner.conditions)
        self._show(inner.names)

    def _minus(self) -> None:
        self._cursor.take()
        left, right = self._so_far(), parse_group(self._cursor)
        self._replace(algebra.Minus(left, right.whole), left, right.whole)

    def _bind(self) -> None:
        cursor = self._cursor
        cursor.take()
        cursor.expect("(")
        value = parse_expression(cursor)
        cursor.expect("AS")
        if cursor.token.text[1:] in self._names:
            raise cursor.syntax_error("a variable that is not yet in scope")
        name = terms.parse_variable(cursor)
        cursor.expect(")")
        left = self._so_far()
        self._replace(algebra.Extend(left, name, value), left, value)
        self._show((name,))

    def _union(self) -> None:
        branches = [parse_group(self._cursor)]
        while union := self._cursor.accept("UNION"):
            self._cursor.record_span("UNION", union)
            branches.append(parse_group(self._cursor))
        self._parts.append(_fold(self._cursor, [each.whole for each in branches], algebra.Union))
        for each in branches:
            self._show(each.names)

    def _graph(self) -> None:
        self._cursor.take()
        name = terms.parse_variable_or_iri(self._cursor, "GRAPH")
        inner = parse_group(self._cursor)
        self._parts.append(self._cursor.check_height(algebra.Graph(name, inner.whole), inner.whole))
        self._show((*visible_names((name,)), *inner.names))

    def _window(self) -> None:
        cursor = self._cursor
        assert cursor.windows is not None
        cursor.take()
        name = parse_window_use(cursor, cursor.windows)
        inner = parse_group(cursor)
        self._parts.append(cursor.check_height(algebra.Window(name, inner.whole), inner.whole))
        self._show(inner.names)

    def _values(self) -> None:
        self._cursor.take()
        found = parse_values(self._cursor)
        self._parts.append(found)
        self._show(found.names)

    def _service(self) -> None:
        cursor = self._cursor
        if cursor.windows is not None:
            cursor.refuse("SERVICE in a continuous query")
        cursor.take()
        silent = bool(cursor.accept("SILENT"))
        endpoint = terms.parse_variable_or_iri(cursor, "SERVICE")
        opening, refusal, windows = cursor.token, cursor.refusal, cursor.windows
        cursor.windows = None
        inner = parse_group(self._cursor)
        # the other endpoint may know constructs that we refuse; windows are ours alone
        cursor.refusal, cursor.windows = refusal, windows
        self._parts.append(algebra.Service(endpoint, silent, cursor.prologue, cursor.since(opening), inner.names))
        self._show((*visible_names((endpoint,)), *inner.names))
