"""Constants: one term by itself, as SPARQL writes it, which is also how N-Triples does."""

from __future__ import annotations

from triplewire.sparql.algebra import Const
from triplewire.sparql.syntax.cursor import Cursor, Rules
from triplewire.sparql.syntax.groups import group
from triplewire.sparql.syntax.selections import select
from triplewire.sparql.syntax.terms import at_literal, iri, literal


def parse_term(text: str) -> str:
    """The canonical text of an absolute IRI in angle brackets, or of a literal: in quotes, a number, or a truth value.

    Raises SparqlSyntax for anything else, and Unsupported for a literal with a base direction.
    """
    cursor = Cursor(text, None, Rules(group, select))
    found = _constant(cursor)
    if cursor.token.kind != "end":
        raise cursor.wrong("the end of the term")
    if cursor.refusal is not None:
        raise cursor.refusal
    return found.term


def _constant(cursor: Cursor) -> Const:
    if cursor.token.kind == "iri":
        return iri(cursor)
    if not at_literal(cursor):
        raise cursor.wrong("an IRI in angle brackets or a literal")
    return literal(cursor)
