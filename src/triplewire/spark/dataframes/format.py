"""The format `triplewire`: columns of events and quads, options of a read, and the port that rows are scanned through.

A scan origin is a lake's table or a running broker. It travels to the executors, and opens there what it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import Filter, InputPartition
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from triplewire.model import END, START, parse_position
from triplewire.model.errors import BadRequest
from triplewire.storage.registry import ontologies
from triplewire.storage.registry.streams import check_stream_name


def _schema(columns: Mapping[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


_TEXT = StringType()

QUADS = _schema(
    {
        "position": LongType(),
        "quad": IntegerType(),
        "graph": _TEXT,
        "subject": _TEXT,
        "predicate": _TEXT,
        "object": _TEXT,
        "object_kind": _TEXT,
        "object_datatype": _TEXT,
        "object_language": _TEXT,
        "object_number": DoubleType(),
        "object_time": TimestampType(),
        "stream": _TEXT,
        "source": _TEXT,
        "application": _TEXT,
        "time": TimestampType(),
        "received": TimestampType(),
        "extensions": _TEXT,
    }
)
"""A row for each quad, as the lake's table has it."""

TRIPLE = _schema({"subject": _TEXT, "predicate": _TEXT, "object": _TEXT})

EVENTS = _schema(
    {
        "position": LongType(),
        "stream": _TEXT,
        "event": _TEXT,
        "source": _TEXT,
        "application": _TEXT,
        "time": TimestampType(),
        "received": TimestampType(),
        "extensions": _TEXT,
        "quads": ArrayType(TRIPLE, containsNull=True),
    }
)
"""A row for each event: its id without brackets, and its quads in the publisher's order, all of the graph `event`."""

SCHEMAS: Mapping[str, StructType] = {"events": EVENTS, "quads": QUADS}

_INSTANT = pa.timestamp("us", "UTC")
_ARROW: Mapping[type[DataType], pa.DataType] = {
    LongType: pa.int64(),
    IntegerType: pa.int32(),
    DoubleType: pa.float64(),
    StringType: pa.string(),
    TimestampType: _INSTANT,
}
_TRIPLES = pa.list_(pa.field("element", pa.struct([pa.field(name, pa.string()) for name in TRIPLE.names])))


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of a frame's columns."""
    return pa.schema([(each.name, _ARROW.get(type(each.dataType), _TRIPLES)) for each in schema])


def select_columns(whole: StructType, names: Sequence[str]) -> StructType:
    """Select columns of a schema. Raises BadRequest for one that it does not have."""
    if unknown := [name for name in names if name not in whole.names]:
        raise BadRequest(f"there is no column {', '.join(unknown)}; there are {', '.join(whole.names)}")
    return StructType([whole[name] for name in names])


def check_columns(whole: StructType, asked: StructType) -> None:
    """Raises BadRequest if a schema that a program gave is not of columns of ours."""
    for mine, theirs in zip(select_columns(whole, asked.names), asked, strict=True):
        if mine.dataType != theirs.dataType:
            wanted, given = mine.dataType.simpleString(), theirs.dataType.simpleString()
            raise BadRequest(f"the column {mine.name} is {wanted}, not {given}")


def entries_to_events(entries: pa.Table, schema: StructType = EVENTS) -> pa.Table:
    """Convert log entries to `EVENTS`, or to some of its columns: column by column, not row by row."""
    return pa.table([_column(entries, name) for name in schema.names], schema=arrow_schema(schema))


def _column(entries: pa.Table, name: str) -> pa.ChunkedArray:
    if name == "quads":
        return pa.chunked_array([_triples(chunk) for chunk in entries["text"].chunks], _TRIPLES)
    made = entries[name]
    return made.cast(_INSTANT) if name in ("time", "received") else made


def _triples(text: pa.Array) -> pa.Array:
    lines = pc.split_pattern(text, "\n")
    terms = pc.split_pattern(lines.flatten(), "\t").flatten()
    made = pa.StructArray.from_arrays([terms[place::3] for place in range(3)], TRIPLE.names)
    return pa.ListArray.from_arrays(lines.offsets, made).cast(_TRIPLES)


READ_OPTIONS = (
    "path",
    "url",
    "token",
    "what",
    "columns",
    "stream",
    "after",
    "through",
    "version",
    "as_of",
    "max_events",
    "fail_on_gap",
    "pushdown",
)
_TOKEN = 16
"""Characters of a position as the broker writes it; fewer are a number, as in the column `position`."""


@dataclass(frozen=True)
class ReadOptions:
    """Where to read, and what. `path` or `url` is set, never both."""

    path: str | None
    url: str | None
    what: str
    columns: tuple[str, ...]
    """None named: all."""
    stream: str | None = None
    after: int = START
    through: int = END
    version: int | None = None
    as_of: datetime | None = None
    max_events: int = ontologies.BATCH_EVENTS
    """Positions in one batch of a stream."""
    fail_on_gap: bool = True
    """Whether a stream fails if events that it has not read are gone from the broker's log."""
    pushdown: bool = True
    """Whether filters are taken, for which the session must hand them down."""
    token: str | None = field(default=None, repr=False)
    """The token that is sent to a broker."""


def parse_options(given: Mapping[str, str]) -> ReadOptions:
    """Raises BadRequest, which names the option and what would be right."""
    said = {name.lower(): value for name, value in given.items()}
    if unknown := sorted(set(said) - set(READ_OPTIONS)):
        raise BadRequest(f"the option {', '.join(unknown)} is not known; there are {', '.join(READ_OPTIONS)}")
    _check_origin(said)
    return ReadOptions(
        path=said.get("path"),
        url=said.get("url"),
        what=_parse_choice(said, "what", "events", tuple(SCHEMAS)),
        columns=tuple(name.strip() for name in said.get("columns", "").split(",") if name.strip()),
        stream=check_stream_name(said["stream"]) if "stream" in said else None,
        after=_parse_position(said, "after", START),
        through=_parse_position(said, "through", END),
        version=_parse_number(said, "version") if "version" in said else None,
        as_of=_parse_time(said["as_of"]) if "as_of" in said else None,
        max_events=_parse_number(said, "max_events", 1) if "max_events" in said else ontologies.BATCH_EVENTS,
        fail_on_gap=_parse_choice(said, "fail_on_gap", "true", ("true", "false")) == "true",
        pushdown=_parse_choice(said, "pushdown", "true", ("true", "false")) == "true",
        token=said.get("token"),
    )


def _check_origin(said: Mapping[str, str]) -> None:
    places = [name for name in ("path", "url") if name in said]
    if len(places) != 1:
        given = "both are given" if places else "neither is given"
        raise BadRequest(f"give path, a lake, or url, a running broker: {given}")
    if "url" in said and (both := [name for name in ("version", "as_of") if name in said]):
        raise BadRequest(f"{both[0]} goes with path: a broker has no versions, the lake does")
    if "path" in said and "token" in said:
        raise BadRequest("token goes with url: a lake is read as files, and asks for none")


def _parse_choice(said: Mapping[str, str], name: str, default: str, choices: tuple[str, ...]) -> str:
    value = said.get(name, default).lower()
    if value not in choices:
        raise BadRequest(f"{name} must be {' or '.join(choices)}, not {said[name]!r}")
    return value


def _parse_number(said: Mapping[str, str], name: str, least: int = 0) -> int:
    if not said[name].isdecimal() or int(said[name]) < least:
        raise BadRequest(f"{name} must be a whole number from {least} on, not {said[name]!r}")
    return int(said[name])


def _parse_position(said: Mapping[str, str], name: str, default: int) -> int:
    text = said.get(name)
    if text is None:
        return default
    return int(text) if text.isdecimal() and len(text) < _TOKEN else parse_position(text)


def _parse_time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise BadRequest(f"as_of must be an ISO 8601 time, such as 2026-11-16T08:30:00Z, not {text!r}") from None


@dataclass
class ScanRange(InputPartition):
    """The input of one task: the positions p with `after < p <= through`, of some files if the origin is a lake."""

    after: int
    through: int
    files: tuple[str, ...] = ()


class ScanOrigin(Protocol):
    """It travels to the executors, and opens there what it needs. All but `read` is called in the driver."""

    def push(self, filters: Iterable[Filter]) -> list[Filter]:
        """Hold to these from now on; those that are left to Spark come back."""

    def reach(self, after: int, most: int | None = None) -> int:
        """The position up to which everything can be read now, with at most so many positions after the first that
        holds something; `after` itself if there is nothing new."""

    def parts(self, after: int, through: int) -> list[ScanRange]:
        """Divide the positions between two into inputs of tasks, each row in one of them."""

    def read(self, part: ScanRange, schema: StructType) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part, with these columns. The same part gives the same rows each time."""
