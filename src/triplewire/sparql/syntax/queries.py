"""Grammar of whole queries: the prologue, the four query forms and the dataset clause; also of one term by itself.

Parsed queries up to `REMEMBERED_QUERY_CHARACTERS` are cached.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from triplewire.model.errors import BodyTooLarge
from triplewire.sparql.algebra import Basic, Const, Dataset, Node, Pattern, Query, Var
from triplewire.sparql.syntax import terms
from triplewire.sparql.syntax.cursor import Cursor, GrammarRules, ScopedOperator, WindowDeclarations, visible_names
from triplewire.sparql.syntax.groups import parse_group
from triplewire.sparql.syntax.select import (
    parse_level,
    parse_select_body,
    parse_select_clause,
    parse_subselect,
    parse_where,
)
from triplewire.sparql.syntax.windows import parse_window_declaration

QUERY_BYTES: Final = 1024 * 1024
"""The longest SPARQL text. One that long, which only VALUES can make, takes the parser about three seconds."""

REMEMBERED_QUERY_CHARACTERS: Final = 16 * 1024
"""The longest query whose algebra is cached, 512 of them: longer ones would fill memory and are seldom repeated."""

_UPDATES = ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH")
_NOTHING = ScopedOperator(Basic(), (), Basic())


def parse_query(text: str, base: str | None = None) -> Query:
    """Parse a query. `base` resolves its relative IRIs if it declares none itself.

    Raises SparqlSyntax for text that is not SPARQL, Unsupported for SPARQL that is not supported, both with the
    position, and BodyTooLarge over the limit.
    """
    if len(text) <= REMEMBERED_QUERY_CHARACTERS:
        return _parse_cached(text, base)
    check_length(text)
    return _parse(text, base)


def check_length(text: str) -> None:
    if len(text.encode(errors="replace")) > QUERY_BYTES:
        raise BodyTooLarge("the SPARQL text", QUERY_BYTES)


@lru_cache(maxsize=512)
def _parse_cached(text: str, base: str | None) -> Query:
    return _parse(text, base)


def _parse(text: str, base: str | None) -> Query:
    return finish_query(start_parsing(text, base))


def start_parsing(text: str, base: str | None, windows: WindowDeclarations | None = None) -> Cursor:
    """Return a cursor after the prologue."""
    cursor = Cursor(text, base, GrammarRules(parse_group, parse_subselect), windows)
    _declarations(cursor)
    cursor.prologue = _prologue(cursor)
    return cursor


def finish_query(cursor: Cursor) -> Query:
    """Parse the query up to the end of the text."""
    query = _query(cursor)
    cursor.expect_end("query")
    return query


def _declarations(cursor: Cursor) -> None:
    while keyword := cursor.accept("PREFIX", "BASE", "VERSION"):
        if keyword.key == "VERSION":
            cursor.refuse(f"VERSION {terms.parse_string(cursor)}", keyword)
        elif keyword.key == "BASE":
            cursor.base = _reference(cursor)
        else:
            name = cursor.expect_kind("name", "a prefix that ends in `:`")
            if not name.text.endswith(":") or name.text.count(":") != 1:
                raise cursor.syntax_error("a prefix that ends in `:`", name)
            cursor.prefixes[name.text[:-1]] = _reference(cursor)


def _prologue(cursor: Cursor) -> str:
    base = [f"BASE <{cursor.base}>\n"] if cursor.base is not None else []
    return "".join((*base, *(f"PREFIX {name}: <{address}>\n" for name, address in cursor.prefixes.items())))


def _reference(cursor: Cursor) -> str:
    if cursor.token.kind != "iri":
        raise cursor.syntax_error("an IRI in angle brackets")
    return terms.parse_iri_text(cursor)


def _query(cursor: Cursor) -> Query:
    if cursor.at(*_UPDATES):
        raise cursor.unsupported("SPARQL Update", hint="events are published, not updated")
    if cursor.at("SELECT"):
        return _select(cursor)
    cursor.record_span(cursor.token.key)
    form = cursor.expect("SELECT", "ASK", "CONSTRUCT", "DESCRIBE").key
    return {"ASK": _ask, "CONSTRUCT": _construct, "DESCRIBE": _describe}[form](cursor)


def _select(cursor: Cursor) -> Query:
    wanted = parse_select_clause(cursor)
    dataset = _dataset(cursor)
    found = parse_select_body(cursor, wanted)
    return Query("select", found.whole, found.names, dataset=dataset)


def _ask(cursor: Cursor) -> Query:
    dataset = _dataset(cursor)
    level = parse_level(cursor, parse_where(cursor), {})
    made = level.projected(())
    return Query("ask", made if level.modified else made.inner, dataset=dataset)


def _construct(cursor: Cursor) -> Query:
    template = _template(cursor) if cursor.at("{") else None
    dataset = _dataset(cursor)
    if template is None:
        cursor.expect("WHERE")
        template = _template(cursor)
        pattern = ScopedOperator(Basic(template), _names(template), Basic(template))
    else:
        pattern = parse_where(cursor)
    names = _names(template)
    return Query("construct", parse_level(cursor, pattern, {}).projected(names), names, template, dataset=dataset)


def _template(cursor: Cursor) -> tuple[Pattern, ...]:
    cursor.expect("{")
    triples = terms.TripleParser(cursor, None)
    while not cursor.accept("}"):
        triples.statement("a triple or `}`")
        if not cursor.accept(".") and not cursor.at("}"):
            raise cursor.syntax_error("`.`, `;`, `,` or `}`")
    return tuple(each for each in triples.found if isinstance(each, Pattern))


def _names(template: tuple[Pattern, ...]) -> tuple[str, ...]:
    nodes = (node for each in template for node in each.triple)
    return tuple(dict.fromkeys(visible_names(nodes)))


def _describe(cursor: Cursor) -> Query:
    star = cursor.accept("*")
    described = () if star else _described(cursor)
    dataset = _dataset(cursor)
    level = parse_level(cursor, parse_where(cursor) if cursor.at("WHERE", "{") else _NOTHING, {})
    names = level.names if star else tuple(dict.fromkeys(visible_names(described)))
    nodes = tuple(Var(name) for name in names) if star else described
    return Query("describe", level.projected(names), names, described=nodes, dataset=dataset)


def _described(cursor: Cursor) -> tuple[Node, ...]:
    found = [terms.parse_variable_or_iri(cursor, "DESCRIBE")]
    while cursor.token.kind == "variable" or terms.at_iri(cursor):
        found.append(terms.parse_variable_or_iri(cursor, "DESCRIBE"))
    return tuple(dict.fromkeys(found))


def _dataset(cursor: Cursor) -> Dataset:
    default: list[str] = []
    named: list[str] = []
    while word := cursor.accept("FROM"):
        graphs = named if cursor.accept("NAMED") else default
        if cursor.windows is not None and graphs is named and cursor.at("WINDOW"):
            parse_window_declaration(cursor, cursor.windows)
        else:
            cursor.record_span("FROM", word)
            graphs.append(terms.parse_iri(cursor).term)
    return Dataset(tuple(default), tuple(named)) if default or named else Dataset()


def parse_term(text: str) -> str:
    """Parse a single term and return its canonical text: an absolute IRI in angle brackets, or a literal (in quotes, a
    number, or a boolean).

    Raises SparqlSyntax for anything else, and Unsupported for a literal with a base direction.
    """
    cursor = Cursor(text, None, GrammarRules(parse_group, parse_subselect))
    found = _constant(cursor)
    cursor.expect_end("term")
    return found.term


def _constant(cursor: Cursor) -> Const:
    if cursor.token.kind == "iri":
        return terms.parse_iri(cursor)
    if not terms.at_literal(cursor):
        raise cursor.syntax_error("an IRI in angle brackets or a literal")
    return terms.parse_literal_term(cursor)
