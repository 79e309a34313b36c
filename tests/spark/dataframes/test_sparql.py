"""SPARQL as frames: the answers are pyoxigraph's, and the program's session stays as it was."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests import oracle
from tests.history.lakes import PREFIXES, E, Growing, triple, typed
from tests.spark.dataframes.sessions import SETTINGS
from triplewire.model import Event
from triplewire.model.errors import BadRequest, NotFound, SparqlSyntax, Unsupported
from triplewire.spark import sparql
from triplewire.spark.dataframes.sparql import TermForms

pytestmark = pytest.mark.spark

FIRST = [
    [triple("a", "part", "b"), triple("a", "value", typed("3.5", "decimal"))],
    [triple("b", "part", "c"), triple("b", "at", typed("2026-01-01T09:00:00+09:00", "dateTime"))],
]
THEN = [
    [triple("c", "part", "d"), triple("c", "name", '"chaud \\"x\\""@fr')],
    [triple("d", "value", typed("-2", "integer")), triple("d", "value", '"much"')],
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory whose lake has two versions."""
    made = tmp_path_factory.mktemp("data")
    lake = Growing(made / "lake" / "quads")
    lake.grow(*FIRST)
    lake.grow(*THEN)
    return made


def asked(
    spark: SparkSession, data: Path, text: str, terms: TermForms = "text", version: int | None = None
) -> DataFrame:
    return sparql(spark, data, PREFIXES + text, terms=terms, version=version)


def bag(frame: DataFrame) -> Counter[oracle.Solution]:
    return Counter(
        tuple((name, text) for name, text in sorted(row.asDict().items()) if text is not None)
        for row in frame.collect()
    )


EVENTS = [Event(f"{E}event/{number}", "\n".join(lines)) for number, lines in enumerate([*FIRST, *THEN])]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?s ?o { ?s :part ?o }",
        "SELECT ?s ?v { ?s :part ?o OPTIONAL { ?o :value ?v FILTER(?v < 0) } }",
        "SELECT ?event ?s { GRAPH ?event { ?s :value ?v } }",
        "SELECT ?x { :a :part+ ?x }",
        "SELECT ?s { { ?s :value ?v } UNION { ?s :name ?n } }",
        "SELECT ?s { ?s :at ?t FILTER(?t = '2026-01-01T00:00:00Z'^^xsd:dateTime) }",
        "SELECT (COUNT(*) AS ?n) { { ?s :value ?v } UNION { VALUES ?s { :a :b } } }",
    ],
)
def test_answers_are_those_of_another_engine(spark: SparkSession, data: Path, text: str) -> None:
    expected = oracle.solutions(EVENTS, PREFIXES + text)
    assert bag(asked(spark, data, text)) == expected
    assert expected


def test_terms_come_as_they_are_wished_for(spark: SparkSession, data: Path) -> None:
    frame = asked(spark, data, "SELECT ?s ?v { ?s :value ?v } ORDER BY ?s ?v", {"v": "number", "s": "plain"})
    assert frame.dtypes == [("s", "string"), ("v", "double")]
    assert sorted(map(tuple, frame.collect()), key=str) == [(f"{E}a", 3.5), (f"{E}d", -2.0), (f"{E}d", None)]
    times = asked(spark, data, "SELECT ?t { ?s :at ?t }", "time")
    assert times.dtypes == [("t", "timestamp")]
    assert times.selectExpr("unix_seconds(t)").first() == (datetime(2026, 1, 1, tzinfo=UTC).timestamp(),)
    names = asked(spark, data, "SELECT ?n { ?s :name ?n }", "plain")
    assert names.first() == ('chaud "x"',)


def test_other_forms_are_frames_too(spark: SparkSession, data: Path) -> None:
    assert asked(spark, data, "ASK { :a :part ?x }").collect() == [(True,)]
    made = asked(spark, data, "CONSTRUCT { ?o :whole ?s } { ?s :part ?o }", "plain")
    assert made.columns == ["subject", "predicate", "object"]
    assert (f"{E}b", f"{E}whole", f"{E}a") in set(map(tuple, made.collect()))
    assert asked(spark, data, "DESCRIBE :a").count() == 2
    assert asked(spark, data, "SELECT * { :a :part :b }").count() == 1


def test_a_frame_is_one_of_the_program(spark: SparkSession, data: Path) -> None:
    """It joins others, and can be named in SQL; nothing of the session is changed or left behind."""
    frame = asked(spark, data, "SELECT ?part ?Part { ?part :part ?Part }")
    assert frame.sparkSession is spark
    spark.createDataFrame([("<http://example.org/a>",)], "s string").createOrReplaceTempView("wanted")
    frame.toDF("s", "o").createOrReplaceTempView("parts")
    assert spark.sql("SELECT o FROM parts JOIN wanted USING (s)").collect() == [(f"<{E}b>",)]
    assert {table.name for table in spark.catalog.listTables()} == {"wanted", "parts"}
    assert {name: spark.conf.get(name) for name in SETTINGS} == SETTINGS
    assert spark.conf.get("spark.sql.timestampType") == "TIMESTAMP_LTZ"
    assert SparkSession.getActiveSession() is spark


def test_the_past_of_a_lake_is_asked_for(spark: SparkSession, data: Path) -> None:
    assert asked(spark, data, "SELECT ?s { ?s :part ?o }", version=1).count() == 2
    assert sparql(spark, data, "SELECT * { ?s ?p ?o }", as_of=datetime.now(UTC)).count() == 8
    with pytest.raises(NotFound, match="version 99"):
        asked(spark, data, "ASK {}", version=99)


def test_what_is_wrong_is_told_before_anything_runs(spark: SparkSession, data: Path, tmp_path: Path) -> None:
    with pytest.raises(SparqlSyntax, match="line 1"):
        sparql(spark, data, "SELECT * { ?s ?p }")
    with pytest.raises(NotFound, match="there is no lake at"):
        sparql(spark, tmp_path, "ASK {}")
    with pytest.raises(BadRequest, match="both given"):
        sparql(spark, data, "ASK {}", version=1, as_of="2026-11-16")
    with pytest.raises(BadRequest, match="ISO 8601"):
        sparql(spark, data, "ASK {}", as_of="yesterday")
    with pytest.raises(BadRequest, match="terms names w; the columns are v"):
        asked(spark, data, "SELECT ?v {}", {"w": "number"})
    with pytest.raises(BadRequest, match="not as 'float'"):
        asked(spark, data, "SELECT ?v {}", "float")  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="its data directory"):
        sparql(spark, data, "ASK {}", entailment="rdfs")
    with pytest.raises(Unsupported, match="owl"):
        sparql(spark, data, "ASK {}", entailment="owl")
