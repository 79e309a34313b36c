"""Filters: what is passed over holds nothing that passes, and rows are chosen as Spark would."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from triplewire.spark.dataframes.origins import combine_filters, push_filter
from triplewire.storage.lake.ports import ColumnRange, DataFile

COLUMNS = {"object": "object", "object_number": "object_number"}
TEXTS = ["", "a", "ab", "b", "b\U0010ffff", "é", "\ufffd", "\U0001f600"]
NUMBERS = [-1.5, -0.0, 0.0, 2.0, math.inf]
COMPARING: list[Any] = [EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual]
MATCHING: list[Any] = [StringStartsWith, StringEndsWith, StringContains]


def simple(column: str, values: list[Any]) -> st.SearchStrategy[Filter]:
    value = st.sampled_from(values)
    kinds = COMPARING + (MATCHING if column == "object" else [])
    compared = st.builds(lambda kind, each: kind((column,), each), st.sampled_from(kinds), value)
    listed = st.lists(value, min_size=1, max_size=3).map(lambda each: In((column,), tuple(each)))
    return st.one_of(compared, listed, st.sampled_from([IsNull((column,)), IsNotNull((column,))]))


both = st.one_of(simple("object", TEXTS), simple("object_number", NUMBERS))
filters = st.one_of(both, both.map(Not))
rows = st.lists(st.tuples(st.sampled_from([None, *TEXTS]), st.sampled_from([None, *NUMBERS])), min_size=1, max_size=4)


def passes(given: Filter, row: dict[str, Any]) -> bool | None:
    """What Spark would say; None is null."""
    if isinstance(given, Not):
        inner = passes(given.child, row)
        return None if inner is None else not inner
    (name,) = given.attribute  # type: ignore[attr-defined]
    value = row[name]
    if isinstance(given, IsNull | IsNotNull):
        return (value is None) == isinstance(given, IsNull)
    if value is None:
        return None
    wanted: Any = given.value  # type: ignore[attr-defined]
    if isinstance(given, In):
        return value in wanted
    texts = {StringStartsWith: str.startswith, StringEndsWith: str.endswith, StringContains: str.__contains__}
    if type(given) in texts:
        return texts[type(given)](value, wanted)
    return bool(
        {
            EqualTo: value == wanted,
            GreaterThan: value > wanted,
            GreaterThanOrEqual: value >= wanted,
            LessThan: value < wanted,
            LessThanOrEqual: value <= wanted,
        }[type(given)]
    )


def ranges(table: pa.Table) -> dict[str, ColumnRange]:
    def bounds(name: str) -> ColumnRange:
        values = [each for each in table[name].to_pylist() if each is not None]
        return (min(values), max(values)) if values else (None, None)

    return {name: bounds(name) for name in COLUMNS}


@settings(max_examples=100, deadline=None)
@given(rows, filters)
def test_files_and_rows_are_chosen_as_spark_would(given: list[tuple[Any, Any]], pushed: Filter) -> None:
    schema = pa.schema([("object", pa.string()), ("object_number", pa.float64())])
    table = pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in given], schema=schema)
    found = push_filter(pushed, COLUMNS)
    assert found is not None
    expected = [row for row in table.to_pylist() if passes(pushed, row)]
    with duckdb.connect(config={"threads": 1}) as duck:
        chosen = combine_filters([found, found])
        assert chosen is not None
        assert duck.from_arrow(table).filter(chosen).to_arrow_table().to_pylist() == expected
    assert found.may_hold(DataFile("f", 1, 1, ranges(table))) or not expected
    assert found.may_hold(DataFile("f", 1, 1, {}))


@pytest.mark.parametrize(
    ("pushed", "least", "greatest"),
    [
        (EqualTo(("object",), "c"), "d", "e"),
        (GreaterThan(("object",), "e"), "d", "e"),
        (LessThanOrEqual(("object_number",), 0.5), 1.0, 2.0),
        (In(("object_number",), (0.0, 3.0)), 1.0, 2.0),
        (StringStartsWith(("object",), "x"), "d", "e"),
        (Not(IsNull(("object",))), None, None),
    ],
)
def test_a_file_is_passed_over(pushed: Filter, least: Any, greatest: Any) -> None:  # noqa: ANN401
    found = push_filter(pushed, COLUMNS)
    assert found is not None
    assert not found.may_hold(DataFile("f", 1, 1, {found.column: (least, greatest)}))


@pytest.mark.parametrize(
    "left",
    [
        EqualTo(("other",), 1),
        EqualTo(("object", "inner"), 1),
        In(("object",), ("a", None)),
        Not(EqualNullSafe(("object",), "a")),
        GreaterThan(("object_number",), math.nan),
        LessThan(("object",), datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)),
    ],
)
def test_what_cannot_be_said_exactly_is_left_to_spark(left: Filter) -> None:
    assert push_filter(left, COLUMNS) is None
