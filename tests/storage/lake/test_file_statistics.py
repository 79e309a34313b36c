"""Ranges hold for every row of a file, survive the table's log, and say where nothing is known."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage.lake.test_delta import entries
from triplewire.model import Event
from triplewire.model.terms import XSD
from triplewire.storage.lake.data_files import RANGE_CHARACTERS, FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import ColumnRange, CommitBatch, DataFile

LONG = "http://example.org/" + "x" * RANGE_CHARACTERS
LAST = '"' + "x" * (RANGE_CHARACTERS - 2)
OBJECTS = (
    LAST + '\U0010ffff\U0010ffff"',
    LAST + '\ud7ffyz"',
    "<http://example.org/a>",
    f"<{LONG}1>",
    f"<{LONG}2>",
    '"\U0001f600"',
    '"\uffee"',
    f'"-5"^^<{XSD}integer>',
    f'"1e300"^^<{XSD}double>',
    f'"INF"^^<{XSD}double>',
    f'"NaN"^^<{XSD}double>',
    f'"1969-12-31T23:59:59.999999Z"^^<{XSD}dateTime>',
    f'"9999-12-31T23:59:59Z"^^<{XSD}dateTime>',
    f'"-0044-03-15T00:00:00Z"^^<{XSD}dateTime>',
)


def committed(folder: Path, *objects: str) -> tuple[DataFile, DataFile]:
    """A file of one event with these objects, as it was written and as the table tells of it."""
    lines = [f"<http://example.org/s{n}>\t<http://example.org/p>\t{each}" for n, each in enumerate(objects)]
    written = FileWriter(folder).write(entries(Event("http://example.org/e", "\n".join(lines))))
    lake = DeltaLake(folder)
    lake.commit(CommitBatch("q", 0, 1), [written])
    return written, lake.files().files[0]


def test_the_table_tells_what_was_measured(tmp_path: Path) -> None:
    written, found = committed(tmp_path, *OBJECTS[2:3], *OBJECTS[7:9], OBJECTS[11])
    assert dict(found.ranges) == dict(written.ranges)
    assert found.ranges["object_number"] == (-5.0, 1e300)
    moment = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    assert found.ranges["object_time"] == (moment, moment)
    assert found.ranges["position"] == (1, 1)


def test_a_column_without_values_says_so(tmp_path: Path) -> None:
    _, found = committed(tmp_path, OBJECTS[2])
    assert found.ranges["object_number"] == (None, None)


def test_where_a_bound_cannot_be_said_nothing_is_known(tmp_path: Path) -> None:
    for number, odd in enumerate(("object_number", "object_number", "object_time")):
        _, found = committed(tmp_path / str(number), (OBJECTS[9], OBJECTS[10], OBJECTS[13])[number])
        assert odd not in found.ranges


@given(st.lists(st.sampled_from(OBJECTS), min_size=1, max_size=6, unique=True))
@settings(max_examples=25, deadline=None)
def test_every_text_lies_within(tmp_path_factory: object, objects: list[str]) -> None:
    folder = tmp_path_factory.mktemp("lake")  # type: ignore[attr-defined]
    _, found = committed(folder, *objects)
    least, greatest = texts(found.ranges["object"])
    assert all(least <= each <= greatest for each in objects)


def texts(given_range: ColumnRange) -> tuple[str, str]:
    least, greatest = given_range
    assert isinstance(least, str)
    assert isinstance(greatest, str)
    return least, greatest
