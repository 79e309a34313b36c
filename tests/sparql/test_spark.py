"""The same cases through Spark SQL."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.sparql import test_history
from tests.sparql.test_expressions import CASES, Case, world
from tests.sparql.worlds import PREFIXES, World
from triplewire.sparql import compile_history, parse, to_sql

pytestmark = pytest.mark.spark

CHUNK = 80
"""Queries that run as one; each alone would take a second."""


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """With Spark's own settings, but for times, which have no zone in our tables."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
    }
    builder = SparkSession.builder.master("local[1]").appName("sparql")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def views(session: SparkSession, world: World) -> None:
    """`quads` and `events` as DuckDB makes them, times without a zone."""
    relations = world.relations()
    for name in ("quads", "events"):
        session.createDataFrame(relations.table(name).to_arrow_table()).createOrReplaceTempView(name)


def spark_sql(text: str) -> str:
    return to_sql(compile_history(parse(PREFIXES + text)), "spark")


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


@pytest.mark.parametrize("case", test_history.CASES)
def test_answers_over_history(session: SparkSession, case: dict[str, Any]) -> None:
    views(session, test_history.world())
    rows = session.sql(spark_sql(case["query"])).collect()
    assert Counter(map(tuple, rows)) == test_history.expected(case)
