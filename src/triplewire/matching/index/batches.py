"""Batches: entries as the arrays that the kernel reads, without a copy of their text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.matching.index.arrays import Events
from triplewire.model.terms import literal
from triplewire.native.arrays import Int32
from triplewire.native.hashes import hash_all

_HEADERS = ("stream", "source", "application")


def events_of(entries: pa.Table) -> Events:
    """The events of an `ENTRIES` table."""
    offsets, data = buffers_of(entries["text"])
    literals: dict[str, int] = {}
    columns = [_numbered(entries[name], literals) for name in _HEADERS]
    bytes_ = [each.encode() for each in literals]
    start = np.zeros(len(bytes_) + 1, np.int64)
    np.cumsum([len(each) for each in bytes_], out=start[1:])
    text = np.frombuffer(b"".join(bytes_) or b"\0", np.uint8)
    return Events(
        text=data,
        start=offsets,
        header=np.stack(columns, axis=1).ravel() if columns else np.zeros(0, np.int32),
        literal_hash=hash_all(text, start),
        literal_start=start,
        literal_text=text,
    )


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def buffers_of(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Where each text begins, with the end of the last, and their bytes."""
    texts = _array(column)
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, kind)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return starts, np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)


def _numbered(column: pa.ChunkedArray, literals: dict[str, int]) -> Int32:
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
