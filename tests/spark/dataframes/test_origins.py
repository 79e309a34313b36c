"""Origins, as the executors use them: a lake's table and a broker give the same rows for the same positions."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, LessThanOrEqual, StringStartsWith
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from tests.http.harness import House
from tests.spark.dataframes.edges import served
from tests.storage.lake.test_delta import entries
from triplewire.model import EventHeaders
from triplewire.model.errors import BadRequest, NotFound
from triplewire.spark.dataframes.data_source import BatchReader
from triplewire.spark.dataframes.format import (
    EVENTS,
    QUADS,
    SCHEMAS,
    ScanOrigin,
    arrow_schema,
    check_columns,
    parse_options,
    select_columns,
)
from triplewire.spark.dataframes.origins import BrokerOrigin, TableOrigin
from triplewire.storage.lake.data_files import QUADS as STORED
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch
from triplewire.storage.log.ports import LogRetention, Publication
from triplewire.testing import event

COUNT = 6


@pytest.fixture(scope="module")
def edge() -> Iterator[House]:
    """With events 1 to 6 at these positions."""
    with served() as at:
        for number in range(1, COUNT + 1):
            others = {"X-Number": str(number)} if number % 2 else {}
            known = replace(event(number), headers=EventHeaders(extensions=others))
            at.twin.log.append([Publication("test", [known])])
        yield at


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, edge: House) -> Path:
    """The same, stored two at a time."""
    made = tmp_path_factory.mktemp("lake")
    for batch in range(3):
        taken = edge.twin.log.read(2 * batch, 2 * batch + 2, 10)
        DeltaLake(made).commit(CommitBatch("q", batch, 2 * batch + 2), [FileWriter(made).write(taken)])
    return made


Make = Callable[..., ScanOrigin]


@pytest.fixture(params=["table", "broker"])
def make(request: pytest.FixtureRequest, table: Path, edge: House) -> Make:
    if request.param == "table":
        return lambda **given: TableOrigin(parse_options({"path": str(table), **given}))
    return lambda **given: BrokerOrigin(parse_options({"url": edge.url, **given}))


def rows(origin: ScanOrigin, schema: StructType, after: int = 0, through: int = COUNT) -> list[dict[str, Any]]:
    """Each part read where it would be: on another machine."""
    there = pickle.loads(pickle.dumps(origin))
    batches = [batch for part in origin.parts(after, through) for batch in there.read(part, schema)]
    assert all(batch.schema == to_arrow_schema(schema, timezone="UTC") for batch in batches)
    found: list[dict[str, Any]] = pa.Table.from_batches(batches, arrow_schema(schema)).to_pylist()
    return found


def test_our_schema_is_that_of_the_lake() -> None:
    assert from_arrow_schema(STORED) == QUADS


def test_events_are_whole_and_in_order(make: Make) -> None:
    found = rows(make(), EVENTS)
    assert [each["position"] for each in found] == list(range(1, COUNT + 1))
    for number, each in enumerate(found, 1):
        (known,) = [event(number)]
        assert each["event"] == known.id
        assert [tuple(quad.values()) for quad in each["quads"]] == [
            (quad.subject, quad.predicate, quad.object) for quad in known.quads
        ]
    assert [each["extensions"] for each in found[:3]] == ['{"X-Number":"1"}', None, '{"X-Number":"3"}']
    assert rows(make(), EVENTS, 2, 3) == found[2:3]
    assert rows(make(), select_columns(EVENTS, ["extensions"]), 2, 3) == [{"extensions": '{"X-Number":"3"}'}]


def test_a_table_and_a_broker_give_the_same(table: Path, edge: House) -> None:
    for what, schema in SCHEMAS.items():
        stored = rows(TableOrigin(parse_options({"path": str(table), "what": what})), schema)
        kept = rows(BrokerOrigin(parse_options({"url": edge.url, "what": what})), schema)
        assert sorted(map(str, stored)) == sorted(map(str, kept))
        assert len(kept) >= COUNT


def test_some_columns_are_read_alone(make: Make) -> None:
    heads = rows(make(), select_columns(EVENTS, ["event", "position"]))
    assert heads[0] == {"event": event(1).id, "position": 1}
    some = select_columns(QUADS, ["object", "position"])
    assert set(rows(make(what="quads"), some)[0]) == {"object", "position"}
    with pytest.raises(BadRequest, match="there is no column subjects; there are position"):
        select_columns(QUADS, ["subjects"])
    with pytest.raises(BadRequest, match="the column position is bigint, not string"):
        check_columns(EVENTS, StructType().add("position", "string"))


@pytest.mark.parametrize(
    ("pushed", "positions", "files"),
    [
        (GreaterThan(("position",), 4), [5, 6], 1),
        (LessThanOrEqual(("position",), 2), [1, 2], 1),
        (EqualTo(("event",), event(3).id), [3], 1),
        (In(("event",), (event(1).id, event(6).id)), [1, 6], 2),
        (EqualTo(("stream",), "other"), [], 0),
    ],
)
def test_a_filter_keeps_files_from_being_opened(table: Path, pushed: Filter, positions: list[int], files: int) -> None:
    origin = TableOrigin(parse_options({"path": str(table)}))
    assert origin.push([pushed]) == []
    assert [each["position"] for each in rows(origin, EVENTS)] == positions
    assert sum(len(part.files) for part in origin.parts(0, COUNT)) == files


def test_a_filter_on_extensions_is_left_to_spark_where_events_are_whole(table: Path) -> None:
    """Of the rows of an event one has them, so that the others would be lost."""
    wanted = EqualTo(("extensions",), '{"X-Number":"3"}')
    assert TableOrigin(parse_options({"path": str(table)})).push([wanted]) == [wanted]
    quads = TableOrigin(parse_options({"path": str(table), "what": "quads"}))
    assert quads.push([wanted]) == []
    assert [(each["position"], each["quad"]) for each in rows(quads, QUADS)] == [(3, 0)]


def test_a_broker_takes_positions_and_the_stream(edge: House) -> None:
    origin = BrokerOrigin(parse_options({"url": edge.url}))
    other = StringStartsWith(("event",), "http")
    left = origin.push([GreaterThan(("position",), 2), LessThanOrEqual(("position",), 5), other])
    assert left == [other]
    assert [(part.after, part.through) for part in origin.parts(0, COUNT)] == [(2, 5)]
    assert origin.push([EqualTo(("stream",), "test"), EqualTo(("stream",), "b"), EqualTo(("stream",), " ")]) == [
        EqualTo(("stream",), "b"),
        EqualTo(("stream",), " "),
    ]
    assert len(rows(origin, EVENTS)) == 3
    assert BrokerOrigin(parse_options({"url": edge.url})).push([EqualTo(("stream",), "b")]) == []


def test_a_stream_of_one_name(make: Make) -> None:
    assert len(rows(make(stream="test"), EVENTS)) == COUNT
    assert rows(make(stream="other"), EVENTS) == []


def test_a_batch_reaches_as_far_as_it_may(make: Make) -> None:
    origin = make()
    assert [origin.reach(0), origin.reach(0, 4), origin.reach(4, 4), origin.reach(6, 4), origin.reach(9)] == [
        6,
        4,
        6,
        6,
        9,
    ]


def test_many_files_are_read_by_many_tasks(table: Path) -> None:
    events = TableOrigin(parse_options({"path": str(table)}), part_bytes=1)
    assert len(events.parts(0, COUNT)) == COUNT
    assert [each["position"] for each in rows(events, EVENTS)] == list(range(1, COUNT + 1))
    quads = TableOrigin(parse_options({"path": str(table), "what": "quads"}), part_bytes=1)
    assert len(quads.parts(0, COUNT)) == 3


def test_an_empty_lake_is_one_empty_part(tmp_path: Path) -> None:
    DeltaLake(tmp_path).commit(CommitBatch("q", 0, 7), [])
    options = parse_options({"path": str(tmp_path)})
    reader = BatchReader(TableOrigin(options), options, EVENTS)
    (part,) = reader.partitions()
    assert list(reader.read(part)) == []


def test_the_first_batch_begins_where_the_lake_does(tmp_path: Path) -> None:
    """What was let go costs no empty batches."""
    DeltaLake(tmp_path).commit(
        CommitBatch("q", 0, 10_010), [FileWriter(tmp_path).write(entries(event(1), first=10_000))]
    )
    assert TableOrigin(parse_options({"path": str(tmp_path)})).reach(0, 5) == 10_004


def test_a_gap_is_told_or_passed_over() -> None:
    with served() as at:
        for number in range(1, COUNT + 1):
            at.append(number)
        at.twin.log.trim(LogRetention(size=1), COUNT)
        origin = BrokerOrigin(parse_options({"url": at.url}))
        assert origin.reach(0, 2) == COUNT
        with pytest.raises(NotFound, match=r"events after 0000000000000002 are gone .* option path"):
            origin.reach(2, 2)
        assert BrokerOrigin(parse_options({"url": at.url, "fail_on_gap": "false"})).reach(2, 2) == COUNT
