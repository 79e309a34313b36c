"""Texts: an expression written out for an engine, with the functions of `TW_` names spelled its way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from sqlglot import exp

from triplewire.sparql.dialects import duckdb, spark

Dialect: TypeAlias = Literal["duckdb", "spark"]

_SPELLINGS: Mapping[str, Mapping[str, Callable[..., exp.Expr]]] = {
    "duckdb": duckdb.SPELLINGS,
    "spark": spark.SPELLINGS,
}


def to_sql(expression: exp.Expr, dialect: Dialect) -> str:
    """The SQL text of an expression that the compiler made."""
    spellings = _SPELLINGS[dialect]
    # a copy also gives each use of a shared part a node of its own, so that one can be replaced without the other;
    # in parentheses, because what has nothing around it cannot be replaced
    copy = exp.Paren(this=expression.copy())
    # breadth-first order reversed: what stands inside is spelled before what stands around it
    for node in reversed([found for found in copy.find_all(exp.Anonymous) if found.name in spellings]):
        node.replace(spellings[node.name](*node.expressions))
    return str(copy.this.sql(dialect=dialect))
