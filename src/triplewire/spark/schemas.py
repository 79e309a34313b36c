"""Schemas: the columns of events and of quads as Spark sees them, and how Arrow tables of ours become these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
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

from triplewire.model.errors import BadRequest


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
    """What Spark takes the batches of a frame of this schema for."""
    return pa.schema([(each.name, _ARROW.get(type(each.dataType), _TRIPLES)) for each in schema])


def part_of(whole: StructType, names: Sequence[str]) -> StructType:
    """Some columns of a schema. Raises BadRequest for one that it does not have."""
    if unknown := [name for name in names if name not in whole.names]:
        raise BadRequest(f"there is no column {', '.join(unknown)}; there are {', '.join(whole.names)}")
    return StructType([whole[name] for name in names])


def check_part(whole: StructType, asked: StructType) -> None:
    """Raises BadRequest if a schema that a program gave is not of columns of ours."""
    for mine, theirs in zip(part_of(whole, asked.names), asked, strict=True):
        if mine.dataType != theirs.dataType:
            wanted, given = mine.dataType.simpleString(), theirs.dataType.simpleString()
            raise BadRequest(f"the column {mine.name} is {wanted}, not {given}")


def events_of(entries: pa.Table, schema: StructType = EVENTS) -> pa.Table:
    """Log entries as `EVENTS`, or those of its columns: whole columns at a time, no row is looked at."""
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
