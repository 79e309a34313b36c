"""Publishing from tasks: what a task does with its events, against an edge."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from tests.http.harness import House
from tests.spark.dataframes.edges import served
from triplewire.model import Event, StreamEvent
from triplewire.model.errors import BadRequest, Unavailable
from triplewire.spark.dataframes.data_source import build_publisher
from triplewire.spark.dataframes.format import EVENTS, arrow_schema, select_columns
from triplewire.spark.dataframes.publish import TaskPublisher, check_events, check_key, refusal_error, split_requests

AT = datetime(2026, 11, 16, 8, 30, tzinfo=UTC)


@pytest.fixture
def edge() -> Iterator[House]:
    with served() as at:
        yield at


def row(name: str, *objects: str | None, **headers: Any) -> dict[str, Any]:  # noqa: ANN401
    quads = [{"subject": "<urn:s>", "predicate": "<urn:p>", "object": each} for each in objects]
    return {"event": f"urn:{name}", "quads": quads, **headers}


def batch(*rows: dict[str, Any]) -> list[pa.RecordBatch]:
    schema = select_columns(EVENTS, ["event", "stream", "source", "application", "time", "extensions", "quads"])
    made: list[pa.RecordBatch] = pa.Table.from_pylist(rows, schema=arrow_schema(schema)).to_batches()
    return made


def test_events_go_where_they_say_with_what_is_said_of_them(edge: House) -> None:
    rows = [
        row("a", '"1"', '"2"', stream="one", source="roof", time=AT),
        row("b", '"3"', stream="one", source="roof", time=AT),
        row("c", '"4"', stream="two", application="app", extensions='{"X-One": "1"}'),
    ]
    told = TaskPublisher(edge.url, None, "k").publish(batch(*rows))
    assert (told.events, told.quads, told.failures) == (3, 4, 0)
    stored = {each["event"]: each for each in edge.twin.log.read(0, 10, 10).to_pylist()}
    assert told.bytes == sum(len(each["text"]) for each in stored.values())
    assert {name: (each["stream"], each["source"], each["application"]) for name, each in stored.items()} == {
        "urn:a": ("one", "roof", None),
        "urn:b": ("one", "roof", None),
        "urn:c": ("two", None, "app"),
    }
    assert [stored[f"urn:{name}"]["extensions"] for name in "abc"] == [None, None, '{"X-One":"1"}']
    assert stored["urn:a"]["time"] == int(AT.timestamp() * 1_000_000)


def test_what_is_refused_is_told_and_the_others_are_published(edge: House) -> None:
    rows = [
        row("a", '"1"'),
        row("b", "no term"),
        row("c", '"1" .\n<urn:s> <urn:p> "2"'),
        row("d"),
        row("e", None),
        row("f", '"2"'),
        {"event": None, "quads": row("g", '"1"')["quads"]},
        row("h", '"1"', time=AT.replace(year=9999)),
        row(" i", '"1"'),
    ]
    told = TaskPublisher(edge.url, "s", "k").publish(batch(*rows))
    assert (told.events, told.failures) == (3, 6)
    reasons = {each.event: each.reason for each in told.examples}
    assert set(reasons) == {"urn:b", "urn:c", "urn:d", "urn:e", "None", "urn: i"}
    assert "line" in reasons["urn:b"]
    assert "at least one quad" in reasons["urn:d"]
    assert sorted(edge.twin.log.read(0, 10, 10)["event"].to_pylist()) == ["urn:a", "urn:f", "urn:h"]
    assert "6 of 9 events were refused, the others are published" in str(refusal_error(told))


def test_extensions_that_may_not_be_are_refused(edge: House) -> None:
    told = TaskPublisher(edge.url, "s", "k").publish(batch(row("a", '"1"', extensions='["X"]'), row("b", '"1"')))
    assert (told.events, told.failures) == (1, 1)
    assert "the column extensions must be a JSON object" in told.examples[0].reason


def test_the_same_id_twice_is_two_events(edge: House) -> None:
    told = TaskPublisher(edge.url, "s", "k").publish(batch(row("a", '"1"'), row("a", '"2"')))
    assert told.events == 2
    assert edge.twin.log.read(0, 10, 10).num_rows == 2


def test_what_comes_again_under_its_key_is_published_once(edge: House) -> None:
    """As it does from a task that runs again; and one after the other, under other keys, twice."""
    rows = [row(f"e{number}", '"1"') for number in range(3)]
    for key, stored in (("k", 3), ("k", 3), ("l", 6)):
        assert TaskPublisher(edge.url, "s", key).publish(batch(*rows)).events == 3
        assert edge.twin.log.read(0, 10, 10).num_rows == stored


def test_requests_are_bounded() -> None:
    events = [StreamEvent("s", Event(f"urn:{name}", "text")) for name in "abcdef"]
    assert [len(each) for each in split_requests(events, most_events=2)] == [2, 2, 2]
    assert [len(each) for each in split_requests(events, most_bytes=3)] == [1] * 6
    assert list(split_requests([])) == []


def test_events_without_a_stream_are_refused(edge: House) -> None:
    told = TaskPublisher(edge.url, None, "k").publish(batch(row("a", '"1"')))
    assert told.examples[0].reason == "the column stream is null; an event must go to a stream"


def test_a_broker_that_does_not_answer_fails_the_task(edge: House) -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        TaskPublisher("http://127.0.0.1:1", "s", "k", attempts=2).publish(batch(row("a", '"1"')))


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (StructType().add("event", "string"), "there is no column quads among event: events have"),
        (StructType([EVENTS["event"], EVENTS["quads"]]), "give stream="),
        (StructType([EVENTS["quads"]]).add("event", "long"), "the column event is bigint; it must be string"),
        (
            StructType().add("event", "string").add("quads", "string"),
            "the column quads is string; it must be array<struct<subject:string,predicate:string,object:string>>",
        ),
    ],
)
def test_columns_that_do_not_fit_are_named(schema: StructType, told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        check_events(schema, None)


def test_options_that_do_not_fit_are_named() -> None:
    with pytest.raises(BadRequest, match="the option what is not known; there are url, token, stream"):
        build_publisher({"what": "events"}, EVENTS, False)
    with pytest.raises(BadRequest, match="url must name a running broker"):
        build_publisher({}, EVENTS, False)
    with pytest.raises(BadRequest, match="must be append"):
        build_publisher({"url": "http://x"}, EVENTS, True)
    made = build_publisher({"url": "http://x", "stream": "s"}, EVENTS, False)
    assert made == TaskPublisher("http://x", "s", made.key)
    with pytest.raises(BadRequest, match="key must be printable"):
        check_key("a\nb")
