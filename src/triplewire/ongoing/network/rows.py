"""Rows on their way: as tables, and as the arrays that compiled code reads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from triplewire.kernels.compiler import Bytes, Int64, Records
from triplewire.ongoing.network.arrays import ROW

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


def table_of(rows: Records, text: Bytes) -> pa.Table:
    """Rows whose texts lie one after the other in their order."""
    columns = [pa.array(np.ascontiguousarray(rows[name])) for name in _NUMBERS]
    return pa.Table.from_arrays([*columns, _texts(rows, text)], schema=ROWS)


def answers_of(answers: Records, text: Bytes) -> pa.Table:
    columns = [pa.array(np.ascontiguousarray(answers[name])) for name in ("group", "oldest", "newest")]
    return pa.Table.from_arrays([*columns, _texts(answers, text)], schema=ANSWERS)


def arrays_of(table: pa.Table) -> tuple[Records, Bytes]:
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


def _texts(rows: Records, text: Bytes) -> pa.Array:
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(rows["length"], out=offsets[1:])
    packed = text[: offsets[-1]]
    if len(rows) and (rows["start"] != offsets[:-1]).any():
        packed = _packed(rows, text, offsets)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(packed))]
    return pa.Array.from_buffers(pa.large_binary(), len(rows), buffers)


def _packed(rows: Records, text: Bytes, offsets: Int64) -> Bytes:
    """Texts with gaps between them, without."""
    places = np.repeat(rows["start"] - offsets[:-1], rows["length"]) + np.arange(offsets[-1])
    packed: Bytes = text[places]
    return packed
