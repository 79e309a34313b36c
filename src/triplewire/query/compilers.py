"""Compilers: from a request to what an engine runs."""

from __future__ import annotations

from typing import Literal, Protocol

from triplewire.errors import Unsupported
from triplewire.query.requests import QueryRequest
from triplewire.sparql import compile_history, parse, to_sql
from triplewire.sparql.conjunctions import Conjunction


class Compiled(Protocol):
    """A query as SQL over `quads` and `events`.

    The columns of its rows are, for `select`, `v0`, `v1`, … for the projection (or `unit` where that is empty); for
    `ask`, `answer`; else `subject`, `predicate` and `object`.
    """

    @property
    def sql(self) -> str: ...
    @property
    def form(self) -> str: ...
    @property
    def projection(self) -> tuple[str, ...]: ...


class _Conjunctive:
    """What today's compiler gives."""

    def __init__(self, query: Conjunction) -> None:
        self.sql = to_sql(compile_history(query), "duckdb")
        self.form: str = query.form
        self.projection = query.projection


def compiled(request: QueryRequest, dialect: Literal["duckdb", "spark"]) -> Compiled:
    """Raises SparqlSyntax or Unsupported."""
    if request.entailment not in (None, "none", "simple"):
        raise Unsupported(f"entailment={request.entailment}")
    if request.default_graphs is not None or request.named_graphs is not None:
        raise Unsupported("a dataset of the request")
    return _Conjunctive(parse(request.text))
