"""Record layouts of the index and of an event batch, as compiled code reads and writes them.

A batch of entries becomes arrays without a copy of its text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.kernels.compiler import Bytes, Int8, Int32, Int64, Records, UInt32, UInt64
from triplewire.kernels.words import hash_texts
from triplewire.model.terms import literal

CONSTANT = np.dtype([("hash", "u8"), ("start", "i8"), ("value", "f8"), ("length", "i4"), ("kind", "i1")], align=True)
"""A term that a program or a group names: its text in the pool, and the number or time that it is."""

PROGRAM = np.dtype(
    [
        ("first_fixed", "i8"),
        ("shape", "i8"),
        ("first_row", "i4"),
        ("rows", "i4"),
        ("first_step", "i4"),
        ("steps", "i4"),
        ("first_hint", "i4"),
        ("hints", "i4"),
        ("variables", "i4"),
        ("threshold", "i4"),
        ("widest", "i4"),
        ("direction", "i1"),
        ("timely", "i1"),
        ("solutions", "i1"),
        ("guards", "i1"),
    ],
    align=True,
)
"""`threshold` is the variable that is held against it, -1 where there is none; `direction` says how, and `timely` that
it is a time. `shape` is the position at which its shape was registered, `widest` the keys that a group may have; and
whom one that `guards` matches, somebody else decides about."""

PATTERN_SLOT = np.dtype([("number", "i4"), ("slot", "i1"), ("header", "i1"), ("again", "i1")], align=True)
"""A slot of a row; there are three for each. The header is that of the row; `again` is the place of the row that has
the same variable before, or -1."""

STEP = np.dtype([("variable", "i4"), ("number", "i4"), ("op", "i1"), ("slot", "i1")], align=True)
"""A step of the machine; number and slot are of its constant."""

HINT = np.dtype([("number", "i4"), ("choice", "i4"), ("row", "i1"), ("way", "i1")], align=True)
"""A parameter that the object of a row must be, or in which other way it is named by it. Of those with the same choice,
one is enough."""

GROUP = np.dtype(
    [("signature", "u8"), ("first_constant", "i8"), ("bound", "f8"), ("program", "i4"), ("members", "i4")], align=True
)
"""`bound` is the threshold that is easiest to pass."""

KEY = np.dtype([("key", "u8"), ("head", "i4"), ("count", "i4")], align=True)
"""An access key, the first of its postings, and how many there are."""

POSTING = np.dtype([("group", "i4"), ("following", "i4"), ("row", "i4")])
"""A group under an access key, the row of its program that the key is of, and the next posting, or -1."""

TERM = np.dtype(
    [
        ("hash", "u8"),
        ("start", "i8"),
        ("stop", "i8"),
        ("number", "f8"),
        ("moment", "f8"),
        ("numeric", "i1"),
        ("timely", "i1"),
    ],
    align=True,
)
"""A term of the event at hand. What number and moment it is, and whether it is one, is read when somebody asks; -1 is
for what was not."""

VARIABLE = np.dtype([("term", "i4"), ("depth", "i4")], align=True)
"""The term that a variable has, and the depth at which it was bound: only what was bound above counts."""

PROBE = np.dtype([("key", "u8"), ("quad", "i4")], align=True)
"""An access key that the event at hand has, and the quad, or the header, that has it."""

MATCH_ROW = np.dtype([("value", "f8"), ("event", "i4"), ("group", "i4")], align=True)
"""A match."""

PAIR = np.dtype([("event", "i4"), ("group", "i4")])
"""What somebody slower decides."""


class IndexArrays(NamedTuple):
    """All that a batch is matched against. `uses` says which kinds of key there are at all, the sieve which keys
    surely are not."""

    programs: Records
    places: Records
    steps: Records
    hints: Records
    groups: Records
    constants: Records
    pool: Bytes
    keys: Records
    postings: Records
    sieve: UInt64
    uses: Int8
    sample: UInt32
    """Counters of keys that events have."""
    sampled: Int64
    """How many events were counted, and how many keys."""
    relations: Any
    """What ontologies say, as `Relations`."""


class BatchArrays(NamedTuple):
    """A batch: texts one after the other, and the headers of each event, as numbers of literals and as these."""

    text: Bytes
    start: Int64
    header: Int32
    """Three for each event: which literal its stream, source and application are; -1 for none."""
    literal_hash: UInt64
    literal_start: Int64
    literal_text: Bytes


class MatchScratch(NamedTuple):
    """What is known of the event at hand, and of the solution that is tried."""

    terms: Records
    halves: UInt64
    """Of each quad the key of predicate and object, and that of subject and predicate."""
    probes: Records
    variables: Records
    cursor: Int32
    """Of each depth the quad that its row has."""
    stack: Int8
    seen: Int32
    """Of each group the last row that it gave."""
    spent: Int64
    """Of each group the last event, from 1 on, on which it took many steps, and how many: the lower half."""


class MatchBuffer(NamedTuple):
    """Rows of what matched, with room for more; there are as many `quads` for each."""

    rows: Records
    quads: Int32
    slow: Records


# Batches: entries as the arrays that the kernel reads, without a copy of their text.

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


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def text_buffers(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Where each text begins, with the end of the last, and their bytes."""
    texts = _array(column)
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, kind)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return starts, np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)


def _number_headers(column: pa.ChunkedArray, literals: dict[str, int]) -> Int32:
    """For each event which of the literals its header is; new ones are added."""
    found = pc.dictionary_encode(_array(column))
    numbers = [
        -1 if value is None else literals.setdefault(literal(value), len(literals))
        for value in found.dictionary.to_pylist()
    ]
    known = np.array([*numbers, -1], np.int32)
    places = found.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)
    numbered: Int32 = known[places]
    return numbered
