"""Expressions over a broad set of terms, evaluated by pyoxigraph and by our SQL, many at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import duckdb
import pyoxigraph as ox
from sqlglot import exp

from tests.sparql.worlds import PREFIXES
from triplewire.sparql import Dialect, Expression, facets_of, parse_query, to_sql
from triplewire.sparql.algebra import Extend, Select
from triplewire.sparql.compiler.expressions import ExpressionScope
from triplewire.sparql.compiler.relations import Relation, TableSource, render_select
from triplewire.sparql.compiler.terms import StoredTerm
from triplewire.sparql.sql import VARCHAR, Sql, cast, column

Row = tuple[str | None, str | None]
NAMES = ("a", "b")


def expression(text: str) -> Expression:
    """The algebra of an expression, that has the variables ?a and ?b."""
    found = parse_query(f"{PREFIXES}SELECT ?r {{ BIND({text} AS ?r) }}").where
    assert isinstance(found, Select)
    assert isinstance(found.inner, Extend)
    return found.inner.expression


def relation(rows: Sequence[Row]) -> str:
    """DuckDB's SQL of a table `t` of the rows: a number, and two terms with their facets."""
    listed = ", ".join(f"({number}, {_quoted(a)}, {_quoted(b)})" for number, (a, b) in enumerate(rows))
    facets = [f"{to_sql(sql, 'duckdb')} AS {name}_{facet}" for name in NAMES for facet, sql in _facets(name).items()]
    return f"SELECT i, a, b, {', '.join(facets)} FROM (VALUES {listed}) AS v(i, a, b)"


def _facets(name: str) -> Mapping[str, Sql]:
    return facets_of(exp.column(name))


def _quoted(term: str | None) -> str:
    return "CAST(NULL AS VARCHAR)" if term is None else exp.Literal.string(term).sql("duckdb")


def compiled(texts: Iterable[str], dialect: Dialect) -> str:
    """SQL over `t`: for each row its number and the term that each expression gives."""
    values = {name: StoredTerm("t", name, certain=False) for name in NAMES}
    scope = ExpressionScope(values, blanks=column("t", "i"))
    made = [scope.value(expression(text)).text() for text in texts]
    outputs = {f"r{index}": cast(sql, VARCHAR) for index, sql in enumerate(made)}
    table = Relation(lets=scope.lets).join(TableSource("t", "t"))
    return to_sql(render_select(table, {"i": column("t", "i"), **outputs}), dialect)


def computed(connection: duckdb.DuckDBPyConnection, text: str) -> list[str | None]:
    """Return the results of our SQL for each row of `t`, as pyoxigraph writes terms."""
    rows = connection.execute(f"{compiled([text], 'duckdb')} ORDER BY 1").fetchall()
    return normal([row[1] for row in rows])


def expected(rows: Sequence[Row], text: str) -> list[str | None]:
    """Return pyoxigraph's results for each row."""
    listed = " ".join(f"({number} {a or 'UNDEF'} {b or 'UNDEF'})" for number, (a, b) in enumerate(rows))
    return _answers(f"SELECT ?i ?r {{ VALUES (?i ?a ?b) {{ {listed} }} BIND({text} AS ?r) }}", len(rows))


def normal(terms: Sequence[str | None]) -> list[str | None]:
    """Terms as pyoxigraph writes them, which knows numbers by their value and not by their digits."""
    listed = " ".join(f"({number} {term or 'UNDEF'})" for number, term in enumerate(terms) if not _blank(term))
    found = _answers(f"SELECT ?i ?r {{ VALUES (?i ?r) {{ {listed} }} }}", len(terms))
    return [term if _blank(term) else made for term, made in zip(terms, found, strict=True)]


def _blank(term: str | None) -> bool:
    return term is not None and term.startswith("_:")


def _answers(query: str, count: int) -> list[str | None]:
    found: list[str | None] = [None] * count
    answer = ox.Store().query(PREFIXES + query)
    assert isinstance(answer, ox.QuerySolutions)
    for row in answer:
        number, term = row["i"], row["r"]
        assert isinstance(number, ox.Literal)
        found[int(number.value)] = None if term is None else str(term)
    return found
