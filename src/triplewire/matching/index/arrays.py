"""Record layouts of the index and of an event batch, as compiled code reads and writes them.

A batch of entries becomes arrays without a copy of its text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.kernels.arrays import (
    Bytes,
    Int8,
    Int32,
    Int64,
    Records,
    UInt32,
    UInt64,
    record_type,
    single_array,
    text_buffers,
)
from triplewire.kernels.words import hash_texts
from triplewire.model.terms import literal

CONSTANT = record_type("u8 hash", "i8 start", "f8 value", "i4 length", "i1 kind")
"""A term that a program or a group names: its text in the pool, and its numeric value or instant."""

PROGRAM = record_type(
    "i8 first_fixed shape",
    "i4 first_row rows first_step steps first_hint hints variables threshold widest",
    "i1 direction timely solutions guards",
)
"""`threshold` is the variable that is compared with the threshold, -1 for none; `direction` is the comparison, and
`timely` says that both are instants. `shape` is the position at which the shape was registered, `widest` the number
of keys that a group may have. The matches of a program that `guards` are candidates for the residual matcher."""

PATTERN_SLOT = record_type("i4 number", "i1 slot header again")
"""A slot of a row, three for each row. `header` is that of the row; `again` is the earlier slot of the row with the
same variable, or -1."""

STEP = record_type("i4 variable number", "i1 op slot")
"""An instruction of the filter machine; `number` and `slot` give its constant."""

HINT = record_type("i4 number choice", "i1 row way")
"""A parameter that the object of a row equals, or relates to in this `way`. One hint of each `choice` must hold."""

GROUP = record_type("u8 signature", "i8 first_constant", "f8 bound", "i4 program members")
"""`bound` is the threshold that is easiest to pass."""

KEY = record_type("u8 key", "i4 head count")
"""An access key, the first of its postings, and how many there are."""

POSTING = np.dtype([("group", "i4"), ("following", "i4"), ("row", "i4")])
"""A group under an access key, the row of its program that the key is of, and the next posting, or -1."""

TERM = record_type("u8 hash", "i8 start stop", "f8 number moment", "i1 numeric timely")
"""A term of the current event. Its number and instant are parsed when they are first needed; until then `numeric`
and `timely` are -1."""

VARIABLE = record_type("i4 term depth")
"""The term of a variable, and the depth at which it was bound. Only bindings of smaller depths count."""

PROBE = record_type("u8 key", "i4 quad")
"""An access key of the current event, and the quad or the header that has it."""

MATCH_ROW = record_type("f8 value", "i4 event group")

PAIR = np.dtype([("event", "i4"), ("group", "i4")])
"""A pair that the index leaves to the evaluator."""


class IndexArrays(NamedTuple):
    """The arrays that a batch is matched against. `uses` flags the kinds of key that exist; `bloom` is a Bloom
    filter of the keys."""

    programs: Records
    slots: Records
    steps: Records
    hints: Records
    groups: Records
    constants: Records
    pool: Bytes
    keys: Records
    postings: Records
    bloom: UInt64
    uses: Int8
    sample: UInt32
    """Counters of keys in a sample of events."""
    sampled: Int64
    """The number of events counted, and of keys."""
    relations: Any
    """The ontologies, as `OntologyRelations`."""


class BatchArrays(NamedTuple):
    """A batch: concatenated texts, and the headers of each event as numbers of literals."""

    text: Bytes
    start: Int64
    header: Int32
    """Three for each event: the literals of its stream, source and application; -1 for none."""
    literal_hash: UInt64
    literal_start: Int64
    literal_text: Bytes


class MatchScratch(NamedTuple):
    """Working memory for the current event and the solution that is tried."""

    terms: Records
    halves: UInt64
    """Two keys for each quad: predicate with object, and subject with predicate."""
    probes: Records
    variables: Records
    cursor: Int32
    """The quad of the row at each depth."""
    stack: Int8
    seen: Int32
    """The last row that each group wrote."""
    spent: Int64
    """For each group, the last event (counted from 1) on which it took many steps, in the upper half, and their
    number in the lower."""


class MatchBuffer(NamedTuple):
    """Buffers for match rows, with the same number of `quads` for each row, and for pairs that are left to the
    evaluator."""

    rows: Records
    quads: Int32
    slow: Records


_HEADERS = ("stream", "source", "application")


def read_events(entries: pa.Table) -> BatchArrays:
    """The events of an `ENTRIES` table."""
    offsets, data = text_buffers(entries["text"])
    literals: dict[str, int] = {}
    columns = [_number_headers(entries[name], literals) for name in _HEADERS]
    bytes_ = [each.encode() for each in literals]
    start = np.zeros(len(bytes_) + 1, np.int64)
    np.cumsum([len(each) for each in bytes_], out=start[1:])
    text = np.frombuffer(b"".join(bytes_) or b"\0", np.uint8)
    return BatchArrays(
        text=data,
        start=offsets,
        header=np.stack(columns, axis=1).ravel() if columns else np.zeros(0, np.int32),
        literal_hash=hash_texts(text, start),
        literal_start=start,
        literal_text=text,
    )


def _number_headers(column: pa.ChunkedArray, literals: dict[str, int]) -> Int32:
    """The number of each event's header among the literals; new literals are added."""
    found = pc.dictionary_encode(single_array(column))
    numbers = [
        -1 if value is None else literals.setdefault(literal(value), len(literals))
        for value in found.dictionary.to_pylist()
    ]
    known = np.array([*numbers, -1], np.int32)
    places = found.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)
    numbered: Int32 = known[places]
    return numbered
