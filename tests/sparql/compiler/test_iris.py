"""IRI resolution against a base, of constants and of terms in a column."""

from __future__ import annotations

import duckdb
import pytest

from tests.sparql.expression_tables import relation
from triplewire.model.terms import iri, literal
from triplewire.sparql import Apply, Const, Expression, Var, to_sql
from triplewire.sparql.compiler.expressions import ExpressionScope
from triplewire.sparql.compiler.relations import InlineLets
from triplewire.sparql.compiler.terms import StoredTerm

BASE = "http://example.org/a/b?q#f"
REFERENCES = {
    "c": "http://example.org/a/c",
    "/c": "http://example.org/c",
    "//other.org/c": "http://other.org/c",
    "?x": "http://example.org/a/b?x",
    "#x": "http://example.org/a/b?q#x",
    "": "http://example.org/a/b?q",
    "urn:x:y": "urn:x:y",
    "http://other.org/ü": "http://other.org/ü",
    "a b": None,
    "<": None,
}


@pytest.mark.parametrize("reference", REFERENCES)
def test_from_a_base(reference: str) -> None:
    term = literal(reference)
    scope = ExpressionScope({"a": StoredTerm("t", "a")}, lets=InlineLets())
    nodes: tuple[Expression, ...] = (Const(term), Var("a"))
    made = [scope.value(Apply("iri", (each, Const(iri(BASE))))).text() for each in nodes]
    outputs = ", ".join(to_sql(sql, "duckdb") for sql in made)
    [row] = duckdb.connect().execute(f"SELECT {outputs} FROM ({relation([(term, None)])}) AS t").fetchall()
    wanted = REFERENCES[reference]
    assert row == ((iri(wanted),) * 2 if wanted else (None, None))


def test_segments_of_dots_are_resolved_in_constants() -> None:
    made = ExpressionScope().value(Apply("iri", (Const('"../c/./d"'), Const(iri(BASE))))).text()
    assert duckdb.connect().execute(f"SELECT {to_sql(made, 'duckdb')}").fetchall() == [("<http://example.org/c/d>",)]
