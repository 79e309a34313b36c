"""Ranges: the least and the greatest value of each column of a file, by which readers pass it over."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

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
_LAST = "\U0010ffff"
_SURROGATES, _AFTER_SURROGATES = 0xD800, 0xE000
"""Between these are code points that are no characters."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAID = range((datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1), 253_402_300_800_000_000)
"""The instants, in microseconds, that have a year of four digits."""


def measured(quads: pa.Table) -> Mapping[str, Range]:
    """Of all rows of a table of quads. The values of dictionaries must all be in use."""
    return dict(_measured(quads))


def _measured(quads: pa.Table) -> Iterator[tuple[str, Range]]:
    for column in RANGED:
        values = _values(quads[column])
        least, greatest = pc.min_max(values).values()
        if not least.is_valid:
            yield column, (None, None)
            continue
        low, high = _bound(least, str), _bound(greatest, _beyond)
        if low is not None and high is not None and not _odd(values):
            yield column, (low, high)


def _values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column
    return pa.chunked_array([chunk.dictionary for chunk in column.chunks], column.type.value_type)


def _odd(values: pa.ChunkedArray) -> bool:
    """Is there a value that is in no order with others?"""
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def _bound(scalar: pa.Scalar[Any], cut: Callable[[str], str | None]) -> Value | None:
    """None where it cannot be said: JSON has no such number, Python no such time. Of a long text its beginning is
    `cut`."""
    if isinstance(scalar, pa.TimestampScalar):
        return _EPOCH + timedelta(microseconds=scalar.value) if scalar.value in _SAID else None
    value: str | int | float = scalar.as_py()
    if isinstance(value, str):
        return value if len(value) <= RANGE_CHARACTERS else cut(value[:RANGE_CHARACTERS])
    return value if math.isfinite(value) else None


def _beyond(start: str) -> str | None:
    """A text that is greater than all that start with one; None where there is none."""
    rest = start.rstrip(_LAST)
    if not rest:
        return None
    following = ord(rest[-1]) + 1
    return rest[:-1] + chr(_AFTER_SURROGATES if following == _SURROGATES else following)


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
        yield DataFile(unquote(row["path"]), row["size_bytes"], row["num_records"], ranges, row.get("partition.zone"))


def from_statistics(path: str, size: int, zone: str | None, said: Mapping[str, Any]) -> DataFile:
    """The same from the words of Delta."""
    rows, least, greatest = said["numRecords"], said.get("minValues", {}), said.get("maxValues", {})
    nulls = said.get("nullCount", {})
    row = {
        "num_records": rows,
        **{f"min.{name}": _read(name, value) for name, value in least.items()},
        **{f"max.{name}": _read(name, value) for name, value in greatest.items()},
        **{f"null_count.{name}": value for name, value in nulls.items()},
    }
    ranges = {name: found for name in RANGED if (found := _range(row, name)) is not None}
    return DataFile(path, size, rows, ranges, zone)


def _read(column: str, value: float | str) -> Value:
    if column in TIMES:
        return datetime.fromisoformat(str(value))
    return float(value) if column == "object_number" else value


def _range(row: Mapping[str, Any], column: str) -> Range | None:
    least, greatest = row.get(f"min.{column}"), row.get(f"max.{column}")
    if least is not None and greatest is not None:
        return least, greatest
    return (None, None) if row.get(f"null_count.{column}") == row["num_records"] else None
