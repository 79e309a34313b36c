"""The same cases through Spark SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.sessions import local_session
from tests.sparql import test_functions, test_queries
from tests.sparql.compiler import test_aggregates
from tests.sparql.expression_tables import compiled, normal
from tests.sparql.test_expressions import CASES, Case, world
from tests.sparql.test_functions import typed
from tests.sparql.worlds import PREFIXES, World
from triplewire.sparql import Dialect, compile_query, parse_query, to_sql
from triplewire.sparql.compiler.aggregates import aggregate
from triplewire.sparql.compiler.comparisons import total_order_keys
from triplewire.sparql.compiler.terms import StoredTerm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(350)]

CHUNK = 80
"""Queries that run as one; each alone would take a second."""


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """Run with Spark's default settings, but for times, which have no zone in our tables."""
    settings = {"spark.sql.shuffle.partitions": "1", "spark.sql.timestampType": "TIMESTAMP_NTZ"}
    with local_session("sparql", "local[1]", settings) as made:
        yield made


def views(session: SparkSession, world: World) -> None:
    """`quads` and `events` as DuckDB makes them, times without a zone."""
    relations = world.relations()
    for name in ("quads", "events"):
        session.createDataFrame(relations.table(name).to_arrow_table()).createOrReplaceTempView(name)


def spark_sql(text: str) -> str:
    compiled = compile_query(parse_query(PREFIXES + text), "spark")
    assert not compiled.steps, "a query that is a part of another cannot have steps of its own"
    return compiled.sql


def answered(session: SparkSession, texts: list[str]) -> set[int]:
    """The numbers of the queries that have an answer."""
    found: set[int] = set()
    for start in range(0, len(texts), CHUNK):
        chunk = enumerate(texts[start : start + CHUNK], start)
        parts = [f"SELECT {number} AS number FROM ({spark_sql(text)})" for number, text in chunk]
        found |= {row.number for row in session.sql(" UNION ALL ".join(parts)).collect()}
    return found


def query(case: Case, expression: str) -> str:
    """One pattern and no DISTINCT, so that Spark needs no shuffle for it."""
    return f"SELECT ?a {{ GRAPH :event{case.number} {{ :case{case.number} :a ?a FILTER({expression}) }} }}"


def test_expressions(session: SparkSession) -> None:
    views(session, world())
    yes = answered(session, [query(case, case.with_constant_b) for case in CASES])
    no = answered(session, [query(case, f"!({case.with_constant_b})") for case in CASES])
    assert {str(case) for case in CASES if case.number in yes} == {
        str(case) for case in CASES if case.expected == "true"
    }
    assert {str(case) for case in CASES if case.number in no} == {
        str(case) for case in CASES if case.expected == "false"
    }


@pytest.mark.parametrize("case", test_queries.CASES)
def test_answers_over_history(session: SparkSession, case: dict[str, Any]) -> None:
    views(session, test_queries.world())
    rows = session.sql(spark_sql(case["query"])).collect()
    assert Counter(map(tuple, rows)) == test_queries.expected(case)


def test_functions_as_duckdb_has_them(session: SparkSession) -> None:
    """Spark writes 1e23, alone of the terms, with other digits, so its texts are left out."""
    rows = [row for row in test_functions.ONE if row[0] != typed("1" + "0" * 23, "double")]
    connection = test_functions.connected(rows)
    session.createDataFrame(connection.table("t").to_arrow_table()).createOrReplaceTempView("t")
    texts = [text for text in test_functions.split(test_functions.OF_ONE) if text not in INEXACT]
    for start in range(0, len(texts), TOGETHER):
        chunk = texts[start : start + TOGETHER]
        found = sorted(map(tuple, session.sql(compiled(chunk, "spark")).collect()))
        assert by_text(chunk, found) == by_text(
            chunk, connection.execute(f"{compiled(chunk, 'duckdb')} ORDER BY 1").fetchall()
        )


TOGETHER = 20
"""Expressions of one SELECT; with more of them Spark compiles for longer than they take by themselves."""

INEXACT = ("xsd:float(?a)",)
"""Engines differ if a float has more than one shortest text."""


def by_text(texts: list[str], rows: list[Any]) -> dict[str, list[Any]]:
    return {text: [row[place] for row in rows] for place, text in enumerate(texts, start=1)}


def test_where_the_specification_decides(session: SparkSession) -> None:
    connection = test_functions.connected([(None, None)])
    session.createDataFrame(connection.table("t").to_arrow_table()).createOrReplaceTempView("t")
    for start in range(0, len(test_functions.CASES), TOGETHER):
        chunk = test_functions.CASES[start : start + TOGETHER]
        [row] = session.sql(compiled([text for text, _ in chunk], "spark")).collect()
        found = dict(zip([text for text, _ in chunk], normal(list(row)[1:]), strict=True))
        assert found == {text: test_functions.wanted_term(wanted) for text, wanted in chunk}


def test_aggregates_as_duckdb_has_them(session: SparkSession) -> None:
    """Each group of terms, and each aggregate over it, in one query. Spark rounds the last digit of thirds."""
    groups = [test_aggregates.terms_of(group) for group in test_aggregates.GROUPS if group not in ("", "1 2 2")]
    connection = test_functions.connected([(term, f'"{n}"') for n, terms in enumerate(groups) for term in terms])
    session.createDataFrame(connection.table("t").to_arrow_table()).createOrReplaceTempView("t")
    values = [aggregate(op, StoredTerm("t", "a", certain=False)).text() for op in (*test_aggregates.OPS, "sample")]
    found, wanted = (
        f"SELECT b, {', '.join(to_sql(value, dialect) for value in values)} FROM t GROUP BY b"
        for dialect in (SPARK, DUCKDB)
    )
    assert sorted(map(tuple, session.sql(found).collect())) == sorted(connection.execute(wanted).fetchall())


SPARK: Dialect = "spark"
DUCKDB: Dialect = "duckdb"


def test_order(session: SparkSession) -> None:
    connection = test_functions.connected(test_functions.ONE)
    session.createDataFrame(connection.table("t").to_arrow_table()).createOrReplaceTempView("t")
    keys = total_order_keys(StoredTerm("t", "a", certain=False))
    found, wanted = (
        f"SELECT a FROM t ORDER BY {', '.join(f'{to_sql(key, dialect)} NULLS FIRST' for key in keys)}"
        for dialect in (SPARK, DUCKDB)
    )
    assert [row.a for row in session.sql(found).collect()] == [row[0] for row in connection.execute(wanted).fetchall()]
