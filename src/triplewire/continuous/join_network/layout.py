"""Memory layout of the join network: record types that compiled code reads and writes, and rows as Arrow tables.

This module does not load the compiler: the edge reads limits from it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from triplewire.kernels.arrays import Bytes, Int8, Int32, Int64, Records, UInt64, record_type

SLOTS = 64
"""Slots of a chain at most: variables and constants of one query."""

NODE = record_type(
    "u8 id salt", "i8 span within predicate_start", "i4 predicate_length width first_child children first_lift lifts"
)
"""A node: a step of some chains. `id` is the same in every process and version. `salt` is the id of its port; `width`
counts the slots that are bound before it; `lifts` is -1 if no query ends here. The triples of an answer may be `span`
positions and `within` microseconds apart: the widest bounds of the queries behind it. The length of a predicate is -1
if it names none."""

PORT = record_type(
    "u8 id", "i8 span within predicate_start", "i4 predicate_length scope first_root roots", "i1 joins lifts"
)
"""A port: an input for triples with one predicate, or with any, of one scope. The bits of `joins` say which terms make
the join key, those of `lifts` which terms must be constants of some query. `roots` are nodes that begin chains, -1 for
a port that begins none. `span` and `within` are the widest bounds of the nodes behind it."""

SLOT = record_type("u8 key", "i4 head count")
"""A slot of a hash table: a key, the first row that has it, and the number of rows. A key of zero is an empty slot."""

GROUP = record_type("i8 span within start", "i4 length node following", "i1 alive")
"""A group: queries with the same node, constants and bounds. Its constants, tab-separated, are in the pool. `following`
is the next group with the same hash, or -1."""

ROW = record_type("u8 key id", "i8 oldest newest began ended start", "i4 length address", "i1 kind")
"""A row: a triple from the port `id`, or a partial result that waits at the node `id`. Both meet by `key`. The text has
tab-separated terms: those of the triple, or the slots. An address of -1 is every partition."""

PARTIAL, TRIPLE, SPREAD, PROBE = 0, 1, 2, 3
"""Kinds of rows. A triple with a heavy key is `SPREAD`: it is stored at the address of its own text, and partial
results with that key are stored everywhere. It is sent once more, as `PROBE`, to the address of the key, where it meets
the partial results from before the key was heavy; a probe is not stored."""

ANSWER = record_type("i8 oldest newest start", "i4 length group")
"""An answer of a group: the positions of its oldest and newest triple, and its slots."""


class NetworkPlan(NamedTuple):
    """The plan of a network, as compiled code reads it."""

    nodes: Records
    roles: Int8
    """Roles of terms, three for each node."""
    references: Int32
    """References of terms, three for each node."""
    children: Int32
    """Numbers of nodes."""
    lifts: Int32
    """Slots that hold constants, for each node at which queries end."""
    ports: Records
    roots: Int32
    """Numbers of nodes."""
    by_predicate: Records
    """Slots of a hash table: the first port of each predicate."""
    anywhere: Int64
    """The first port that takes any predicate, and the number of such ports."""
    wanted: UInt64
    """Hashes of a port and the constants that some query has there."""
    groups: Records
    by_constants: Records
    """Slots of a hash table: the first group of each node and constants."""
    pool: Bytes
    spread: Int8
    """One number: whether rows are spread by values, or stay with their pattern."""
    heavy: UInt64
    """Join keys whose triples are spread over all partitions."""


class OutputBuffers(NamedTuple):
    """Buffers for rows and answers. `counts` has rows, bytes of their text, answers, bytes of their text."""

    rows: Records
    text: Bytes
    answers: Records
    answer_text: Bytes
    counts: Int64
    seen: Int64
    """The number of triples that each port took."""
    starts: Int32
    """The begin of each slot of the current text."""
    stops: Int32


class NetworkEvents(NamedTuple):
    """Events as arrays: their texts in one buffer, positions, times, and scopes."""

    text: Bytes
    start: Int64
    position: Int64
    time: Int64
    scopes: Any
    """A row of booleans for each event, by scope."""


class StoredRows(NamedTuple):
    """Stored rows with their texts, and an index by join key."""

    rows: Records
    numbers: Int32
    """The number of the node at which each row waits, or -1."""
    text: Bytes
    following: Int32
    by_key: Records


_NUMBERS = ("key", "id", "oldest", "newest", "began", "ended", "address", "kind")

ROWS = pa.schema([*(pa.field(name, pa.from_numpy_dtype(ROW[name])) for name in _NUMBERS), ("text", pa.large_binary())])
"""Rows between partitions and in changelogs: see `ROW`."""

ANSWERS = pa.schema(
    [
        pa.field("group", pa.int32()),
        pa.field("oldest", pa.int64()),
        pa.field("newest", pa.int64()),
        pa.field("text", pa.large_binary()),
    ]
)
"""Answers of groups: see `ANSWER`."""


def rows_to_table(rows: Records, text: Bytes) -> pa.Table:
    """Return rows, with their texts in one buffer, as a `ROWS` table."""
    columns = [pa.array(np.ascontiguousarray(rows[name])) for name in _NUMBERS]
    return pa.Table.from_arrays([*columns, _text_column(rows, text)], schema=ROWS)


def answers_to_table(answers: Records, text: Bytes) -> pa.Table:
    columns = [pa.array(np.ascontiguousarray(answers[name])) for name in ("group", "oldest", "newest")]
    return pa.Table.from_arrays([*columns, _text_column(answers, text)], schema=ANSWERS)


def table_to_rows(table: pa.Table) -> tuple[Records, Bytes]:
    """Return the rows of a `ROWS` table, and their texts in one buffer."""
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
    """Return the texts of rows without the gaps between them."""
    places = np.repeat(rows["start"] - offsets[:-1], rows["length"]) + np.arange(offsets[-1])
    packed: Bytes = text[places]
    return packed
