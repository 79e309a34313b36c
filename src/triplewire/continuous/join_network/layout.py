"""Memory layout of the join network: record types that compiled code reads and writes, and rows as Arrow tables.

This module does not load the compiler: the edge reads limits from it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from triplewire.kernels.compiler import Bytes, Int8, Int32, Int64, Records, UInt64

SLOTS = 64
"""Slots of a chain at most: variables and constants of one query."""

NODE = np.dtype(
    [
        ("id", "u8"),
        ("salt", "u8"),
        ("span", "i8"),
        ("within", "i8"),
        ("predicate_start", "i8"),
        ("predicate_length", "i4"),
        ("width", "i4"),
        ("first_child", "i4"),
        ("children", "i4"),
        ("first_lift", "i4"),
        ("lifts", "i4"),
    ],
    align=True,
)
"""A step of some chain, after those before it: `id` names it in every process and at every time. `salt` is that of its
port; `width` counts the slots that are bound before it; `lifts` is -1 where no query ends. Pieces of an answer may be
`span` positions and `within` microseconds apart, as the most patient query behind it has it. The length of a predicate
is -1 where it names none."""

PORT = np.dtype(
    [
        ("id", "u8"),
        ("span", "i8"),
        ("within", "i8"),
        ("predicate_start", "i8"),
        ("predicate_length", "i4"),
        ("scope", "i4"),
        ("first_root", "i4"),
        ("roots", "i4"),
        ("joins", "i1"),
        ("lifts", "i1"),
    ],
    align=True,
)
"""By which triples come in: those with one predicate, or with any, of one scope; to be met by their values at the
places of the bits of `joins`, and only with constants that some query has at those of `lifts`. `roots` are nodes that
begin chains, where this is a port of beginnings; it is -1 at others. `span` and `within` are those of the most patient
node behind it."""

SLOT = np.dtype([("key", "u8"), ("head", "i4"), ("count", "i4")], align=True)
"""Of a table of hashes: the first of what has a key, and how much there is. A key of zero is none."""

GROUP = np.dtype(
    [
        ("span", "i8"),
        ("within", "i8"),
        ("start", "i8"),
        ("length", "i4"),
        ("node", "i4"),
        ("following", "i4"),
        ("alive", "i1"),
    ],
    align=True,
)
"""Queries that ask the same of what reaches a node; their constants, with tabs between them, are in the pool.
`following` is the next group of the same hash, or -1."""

ROW = np.dtype(
    [
        ("key", "u8"),
        ("id", "u8"),
        ("oldest", "i8"),
        ("newest", "i8"),
        ("began", "i8"),
        ("ended", "i8"),
        ("start", "i8"),
        ("length", "i4"),
        ("address", "i4"),
        ("kind", "i1"),
    ],
    align=True,
)
"""What travels and is kept: a triple that came in by the port `id`, or a partial result that waits at the node `id`. It
is met by its `key`. Its text has terms with tabs between them: those of the triple, or those of the slots. An address
of -1 is everywhere."""

PARTIAL, TRIPLE, SPREAD, PROBE = 0, 1, 2, 3
"""Kinds of rows. Of a key that is heavy, triples are kept wherever their own text leads them, and what waits for them
is kept everywhere. A triple is then `SPREAD`, and meets what waits everywhere; and it is sent once more, as `PROBE`, to
where it would have been kept, to meet what waited there before the key was heavy; as that it is not kept."""

ANSWER = np.dtype(
    [
        ("oldest", "i8"),
        ("newest", "i8"),
        ("start", "i8"),
        ("length", "i4"),
        ("group", "i4"),
    ],
    align=True,
)
"""A combination that answers the queries of a group: the positions of its oldest and newest triple, and its slots."""


class NetworkPlan(NamedTuple):
    """All that rows are routed and joined by."""

    nodes: Records
    roles: Int8
    """Three for each node."""
    references: Int32
    """Likewise."""
    children: Int32
    """Numbers of nodes."""
    lifts: Int32
    """Slots that hold constants, for each node at which queries end."""
    ports: Records
    roots: Int32
    """Numbers of nodes."""
    by_predicate: Records
    """Slots: the first of the ports of a predicate, by its hash."""
    anywhere: Int64
    """The first of the ports that take any predicate, and their number."""
    wanted: UInt64
    """Hashes of port and constants that some query has."""
    groups: Records
    by_constants: Records
    """Slots: the first group, by the hash of node and constants."""
    pool: Bytes
    spread: Int8
    """One number: whether rows are spread by values, or lie with their pattern."""
    heavy: UInt64
    """Keys under which too many triples lie for one place."""


class OutputBuffers(NamedTuple):
    """Room for rows and answers. `counts`: rows, bytes of their text, answers, bytes of their text."""

    rows: Records
    text: Bytes
    answers: Records
    told: Bytes
    counts: Int64
    seen: Int64
    """For each port, how many triples came in by it."""
    starts: Int32
    """Where each slot of the text at hand begins, from its own beginning."""
    stops: Int32


class NetworkEvents(NamedTuple):
    """Events: texts one after the other, with position, time and the scopes that they are in."""

    text: Bytes
    start: Int64
    position: Int64
    time: Int64
    scopes: Any
    """A row of booleans for each event."""


class StoredRows(NamedTuple):
    """Rows that are kept, with their texts, and an index of those by key."""

    rows: Records
    numbers: Int32
    """Of each row the node that it waits at, or -1."""
    text: Bytes
    following: Int32
    by_key: Records


# Rows on their way: as tables, and as the arrays that compiled code reads.

_NUMBERS = ("key", "id", "oldest", "newest", "began", "ended", "address", "kind")

ROWS = pa.schema([*(pa.field(name, pa.from_numpy_dtype(ROW[name])) for name in _NUMBERS), ("text", pa.large_binary())])
"""What travels between places, and what a place keeps: see `ROW`."""

ANSWERS = pa.schema(
    [
        pa.field("group", pa.int32()),
        pa.field("oldest", pa.int64()),
        pa.field("newest", pa.int64()),
        pa.field("text", pa.large_binary()),
    ]
)
"""Combinations that answer a group: see `ANSWER`."""


def rows_to_table(rows: Records, text: Bytes) -> pa.Table:
    """Rows whose texts lie one after the other in their order."""
    columns = [pa.array(np.ascontiguousarray(rows[name])) for name in _NUMBERS]
    return pa.Table.from_arrays([*columns, _text_column(rows, text)], schema=ROWS)


def answers_to_table(answers: Records, text: Bytes) -> pa.Table:
    columns = [pa.array(np.ascontiguousarray(answers[name])) for name in ("group", "oldest", "newest")]
    return pa.Table.from_arrays([*columns, _text_column(answers, text)], schema=ANSWERS)


def table_to_rows(table: pa.Table) -> tuple[Records, Bytes]:
    """The same back: rows, and their texts one after the other."""
    rows = np.zeros(table.num_rows, ROW)
    for name in _NUMBERS:
        rows[name] = table[name].to_numpy()
    texts = table["text"].combine_chunks() if table["text"].num_chunks != 1 else table["text"].chunk(0)
    offsets, data = _buffers(texts)
    rows["start"], rows["length"] = offsets[:-1] - offsets[0], np.diff(offsets)
    return rows, np.frombuffer(data[offsets[0] : offsets[-1]] or b"\0", np.uint8)


def _buffers(texts: pa.LargeBinaryArray) -> tuple[Int64, memoryview]:
    _, offsets, data = texts.buffers()
    found = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return (found if len(found) else np.zeros(1, np.int64)), memoryview(data or b"")


def _text_column(rows: Records, text: Bytes) -> pa.Array:
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(rows["length"], out=offsets[1:])
    packed = text[: offsets[-1]]
    if len(rows) and (rows["start"] != offsets[:-1]).any():
        packed = _close_gaps(rows, text, offsets)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(packed))]
    return pa.Array.from_buffers(pa.large_binary(), len(rows), buffers)


def _close_gaps(rows: Records, text: Bytes, offsets: Int64) -> Bytes:
    """Texts with gaps between them, without."""
    places = np.repeat(rows["start"] - offsets[:-1], rows["length"]) + np.arange(offsets[-1])
    packed: Bytes = text[places]
    return packed
