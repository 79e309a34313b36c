"""Texts: an expression written out for an engine, with the functions of `TW_` names spelled its way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal, TypeAlias

from sqlglot import exp
from sqlglot.generator import Generator
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.generators.spark import SparkGenerator

from triplewire.sparql.dialects import duckdb, spark

Dialect: TypeAlias = Literal["duckdb", "spark"]
Spelling: TypeAlias = Callable[..., exp.Expr]


class _Spelled(Generator):
    """Spells our functions when it comes to them: the tree stays as it is, so parts of it may be shared."""

    spellings: ClassVar[Mapping[str, Spelling]]

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        spelling = self.spellings.get(expression.name)
        return super().anonymous_sql(expression) if spelling is None else self.sql(spelling(*expression.expressions))


class _DuckDB(_Spelled, DuckDBGenerator):
    spellings = duckdb.SPELLINGS


class _Spark(_Spelled, SparkGenerator):
    spellings = spark.SPELLINGS


_GENERATORS: Mapping[str, Callable[[], Generator]] = {
    "duckdb": lambda: _DuckDB(dialect="duckdb"),
    "spark": lambda: _Spark(dialect="spark"),
}


def to_sql(expression: exp.Expr, dialect: Dialect) -> str:
    """The SQL text of an expression that the compiler made."""
    return _GENERATORS[dialect]().generate(expression, copy=False)
