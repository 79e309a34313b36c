"""SQL text generators for each engine: `to_sql` writes a compiled expression, spelling `TW_` functions in the engine's
dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal, TypeAlias

from sqlglot import exp
from sqlglot.generator import Generator
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.generators.spark import SparkGenerator

from triplewire.sparql.dialects import duckdb, spark

Dialect: TypeAlias = Literal["duckdb", "spark"]
FunctionSpelling: TypeAlias = Callable[..., exp.Expr]


class _SpellingGenerator(Generator):
    """A SQL generator that spells `TW_` functions as it meets them: the tree is not changed, so that parts may be
    shared."""

    spellings: ClassVar[Mapping[str, FunctionSpelling]]

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        spelling = self.spellings.get(expression.name)
        return super().anonymous_sql(expression) if spelling is None else self.sql(spelling(*expression.expressions))


class _DuckDB(_SpellingGenerator, DuckDBGenerator):
    spellings = duckdb.SPELLINGS


class _Spark(_SpellingGenerator, SparkGenerator):
    spellings = spark.SPELLINGS


_GENERATORS: Mapping[str, Callable[[], Generator]] = {
    "duckdb": lambda: _DuckDB(dialect="duckdb"),
    "spark": lambda: _Spark(dialect="spark"),
}


def to_sql(expression: exp.Expr, dialect: Dialect) -> str:
    """The SQL text of an expression that the compiler made."""
    return _GENERATORS[dialect]().generate(expression, copy=False)
