"""Spark over the lake's own files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.lake.test_delta import entries
from triplewire.lake.delta import DeltaLake
from triplewire.lake.ports import Batch
from triplewire.lake.quads import FileWriter
from triplewire.model import Event
from triplewire.query import spark
from triplewire.sparql import compile_query, parse_query

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """With a lake in which d is a part of c, c of b, and b of a."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]").appName("lake")
    for name, value in {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    table = tmp_path_factory.mktemp("lake")
    events = [Event(f"urn:e:{part}", f"<urn:{part}>\t<urn:in>\t<urn:{whole}>") for part, whole in ("dc", "cb", "ba")]
    DeltaLake(table).commit(Batch("q", 0, 7), [FileWriter(table).write(entries(*events))])
    spark.load(made, DeltaLake(table).files())
    yield made
    made.stop()


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("?x <urn:in>+ <urn:a>", {"b", "c", "d"}),
        ("?x <urn:in>* <urn:b>", {"b", "c", "d"}),
        ("<urn:c> <urn:in>+ ?x", {"a", "b"}),
    ],
)
def test_paths_that_begin_at_a_constant(session: SparkSession, where: str, found: set[str]) -> None:
    compiled = compile_query(parse_query(f"SELECT ?x {{ {where} }}"), "spark")
    assert set(spark.run(session, compiled).column("v0").to_pylist()) == {f"<urn:{name}>" for name in found}
