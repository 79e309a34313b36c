"""Ranges: the least and the greatest value of each column of a file, by which readers pass it over."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from triplewire.config.limits import RANGE_CHARACTERS
from triplewire.lake.ports import DataFile, Range, Value

RANGED = (
    "position",
    "graph",
    "subject",
    "predicate",
    "object",
    "object_number",
    "object_time",
    "stream",
    "source",
    "time",
    "received",
)
"""The columns that are worth a range."""

TIMES = ("object_time", "time", "received")
_NUMBERS = ("position", "object_number")
_LAST = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAID = range((datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1), 253_402_300_800_000_000)
"""The instants, in microseconds, that have a year of four digits."""


def _bounds(column: str) -> str:
    """In SQL: whether there is no value, the least and the greatest; of texts only a beginning."""
    least, greatest = f"min({column})", f"max({column})"
    if column in TIMES:
        return f"{least} IS NULL, epoch_us({least}), epoch_us({greatest})"
    if column in _NUMBERS:
        return f"{least} IS NULL, {least}, {greatest}"
    length = RANGE_CHARACTERS + 1
    return f"{least} IS NULL, left({least}, {length}), left({greatest}, {length})"


_MEASURE = f"SELECT {', '.join(map(_bounds, RANGED))} FROM "


def measured(duck: duckdb.DuckDBPyConnection, relation: str) -> Mapping[str, Range]:
    """Of all rows of a relation of quads."""
    (row,) = duck.execute(_MEASURE + relation).fetchall()
    return dict(_read(row))


def _read(row: Sequence[Any]) -> Iterator[tuple[str, Range]]:
    for at, column in enumerate(RANGED):
        none, least, greatest = row[3 * at : 3 * at + 3]
        if none:
            yield column, (None, None)
        elif (low := _bound(column, least, "")) is not None and (high := _bound(column, greatest, _LAST)) is not None:
            yield column, (low, high)


def _bound(column: str, value: Any, after: str) -> Value | None:  # noqa: ANN401 - as the engine gives it
    """None where it cannot be said: JSON has no such number, Python no such time."""
    if column in TIMES:
        return _EPOCH + timedelta(microseconds=value) if value in _SAID else None
    if isinstance(value, str):
        return value if len(value) <= RANGE_CHARACTERS else value[:RANGE_CHARACTERS] + after
    return value if math.isfinite(value) else None


def to_statistics(file: DataFile) -> str:
    """In the words of Delta."""
    known = {name: bounds for name, bounds in file.ranges.items() if bounds[0] is not None}
    return json.dumps(
        {
            "numRecords": file.rows,
            "minValues": {name: _written(bounds[0]) for name, bounds in known.items()},
            "maxValues": {name: _written(bounds[1]) for name, bounds in known.items()},
            "nullCount": {name: file.rows for name in file.ranges if name not in known},
        },
        ensure_ascii=False,
    )


def _written(value: Value | None) -> int | float | str | None:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27) if isinstance(value, datetime) else value


def from_actions(actions: pa.Table) -> Iterator[DataFile]:
    """The files that a table has, from its own account of them, which is flat."""
    for row in actions.to_pylist():
        ranges = {name: found for name in RANGED if (found := _range(row, name)) is not None}
        yield DataFile(row["path"], row["size_bytes"], row["num_records"], ranges, row.get("partition.zone"))


def _range(row: Mapping[str, Any], column: str) -> Range | None:
    least, greatest = row.get(f"min.{column}"), row.get(f"max.{column}")
    if least is not None and greatest is not None:
        return least, greatest
    return (None, None) if row.get(f"null_count.{column}") == row["num_records"] else None
