"""The format `triplewire` in somebody's session: found by itself, read in parts, followed, and written to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.history.lakes import Growing, triple, typed
from tests.http.harness import House
from tests.spark.dataframes.edges import served
from triplewire.model.errors import BadRequest
from triplewire.spark import EVENTS, QUADS, register, write_events
from triplewire.storage.lake.delta import DeltaLake
from triplewire.testing import event

pytestmark = [pytest.mark.spark, pytest.mark.timeout(350)]


def reading(number: int) -> list[str]:
    return [triple(f"s{number}", "value", typed(str(number), "integer")), triple(f"s{number}", "kind", "Sensor")]


@pytest.fixture
def lake(tmp_path: Path) -> Growing:
    """Three files of two events each."""
    made = Growing(tmp_path / "lake" / "quads")
    for first in (1, 3, 5):
        made.grow(reading(first), reading(first + 1))
    return made


@pytest.fixture(scope="module")
def edge() -> Iterator[House]:
    with served() as at:
        yield at


def read(spark: SparkSession, **options: str) -> DataFrame:
    return spark.read.format("triplewire").options(**options).load()


def test_a_lake_is_read_without_being_registered(spark: SparkSession, lake: Growing, tmp_path: Path) -> None:
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert read(spark, path=str(tmp_path), pushdown="false").where("position > 4").count() == 2
    with pytest.raises(AnalysisException, match="Set it to true to enable filter pushdown"):
        read(spark, path=str(tmp_path)).count()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    events, quads = read(spark, path=str(tmp_path)), read(spark, path=str(tmp_path), what="quads")
    assert (events.schema, quads.schema) == (EVENTS, QUADS)
    found = events.select("position", F.col("quads")[0]["object"]).orderBy("position").collect()
    assert [row[0] for row in found] == [1, 2, 3, 4, 5, 6]
    assert found[0][1] == typed("1", "integer")
    assert quads.where("object_number > 4").agg(F.sum("object_number")).first() == (11.0,)
    register(spark)
    assert read(spark, path=str(tmp_path), columns="event").columns == ["event"]


def test_filters_reach_the_files(spark: SparkSession, lake: Growing, tmp_path: Path) -> None:
    """What is passed over is not even there: a file that only other filters would open was taken away."""
    register(spark)
    first = DeltaLake(lake.path).files().files[0]
    (lake.path / first.path).unlink()
    quads = read(spark, path=str(tmp_path), what="quads")
    kept = quads.where("object_number >= 3 AND predicate = '<http://example.org/value>'")
    assert sorted(row.object_number for row in kept.collect()) == [3.0, 4.0, 5.0, 6.0]
    assert "Filter" not in kept._jdf.queryExecution().optimizedPlan().toString()
    assert read(spark, path=str(tmp_path)).where("position BETWEEN 4 AND 5").count() == 2


def follow(spark: SparkSession, folder: Path, **options: str) -> list[list[int]]:
    """Everything that there is, as the batches in which it came."""
    batches: list[list[int]] = []
    frame = spark.readStream.format("triplewire").options(**options).load()
    query = (
        frame.writeStream.foreachBatch(lambda batch, _: batches.append(sorted(row.position for row in batch.collect())))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    return batches


def test_a_stream_of_a_lake_goes_on_where_it_was(spark: SparkSession, lake: Growing, tmp_path: Path) -> None:
    assert follow(spark, tmp_path, path=str(tmp_path), max_events="4") == [[1, 2, 3, 4], [5, 6]]
    lake.grow(reading(7))
    assert follow(spark, tmp_path, path=str(tmp_path), max_events="4") == [[7]]


def test_a_broker_is_followed_and_published_to(spark: SparkSession, edge: House, tmp_path: Path) -> None:
    register(spark)
    edge.append(1, 2, 3)
    assert follow(spark, tmp_path, url=edge.url, columns="position", max_events="2") == [[1, 2], [3]]
    report = write_events(read(spark, url=edge.url).where("position > 1"), edge.url, "copies")
    assert (report.events, report.failures, report.quads) == (2, 0, 2 * len(event(1).quads))
    assert follow(spark, tmp_path, url=edge.url, columns="position", max_events="2") == [[4, 5]]
    stored = edge.twin.log.read(3, 5, 10)
    assert set(stored["stream"].to_pylist()) == {"copies"}
    assert sorted(zip(stored["event"].to_pylist(), stored["text"].to_pylist(), strict=True)) == [
        (each.id, each.text) for each in (event(2), event(3))
    ]


def test_a_frame_is_saved_to_a_broker(spark: SparkSession, edge: House) -> None:
    head = edge.twin.log.head()
    frame = spark.createDataFrame(
        [("urn:x", "saved", [("<urn:s>", "<urn:p>", '"1"')])],
        "event string, stream string, quads array<struct<subject: string, predicate: string, object: string>>",
    )
    frame.write.format("triplewire").option("url", edge.url).mode("append").save()
    (stored,) = edge.twin.log.read(head, head + 10, 10).to_pylist()
    assert (stored["event"], stored["stream"], stored["text"]) == ("urn:x", "saved", '<urn:s>\t<urn:p>\t"1"')


def test_a_batch_that_is_replayed_is_published_once(spark: SparkSession, edge: House, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"

    def run() -> list[str]:
        events = spark.readStream.format("triplewire").option("url", edge.url).option("stream", "replayed").load()
        writing = events.writeStream.format("triplewire").option("url", edge.url).option("stream", "copied")
        writing.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination(120)
        stored = edge.twin.log.read(0, 100, 100)
        return [each["event"] for each in stored.to_pylist() if each["stream"] == "copied"]

    edge.append(7, 8, stream="replayed")
    assert sorted(run()) == [event(7).id, event(8).id]
    for done in (checkpoint / "commits").iterdir():
        done.unlink()
    assert len(run()) == 2


def test_what_is_wrong_is_told_where_it_is_said(spark: SparkSession, edge: House, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match="what must be events or quads, not 'triples'"):
        read(spark, path=str(tmp_path), what="triples")
    with pytest.raises(AnalysisException, match="both are given"):
        read(spark, path=str(tmp_path), url=edge.url)
    with pytest.raises(BadRequest, match="there is no column event and quads among id: events have"):
        write_events(spark.range(1), edge.url, "x")
    with pytest.raises(StreamingQueryException, match="there is no lake at"):
        follow(spark, tmp_path, path=str(tmp_path / "nowhere"))
