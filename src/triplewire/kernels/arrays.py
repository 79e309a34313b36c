"""The arrays that compiled functions take: their types, and texts as buffers. This does not load the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Records = npt.NDArray[Any]
Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]


def record_type(*fields: str) -> np.dtype[Any]:
    """The type of a record, aligned as in C: its fields as texts of a type and names, such as `i8 start stop`."""
    return np.dtype([(name, kind) for kind, *names in map(str.split, fields) for name in names], align=True)


def text_buffers(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """The offset of each text, with the end of the last, and the bytes of all."""
    texts = single_array(column)
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, kind)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return starts, np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)


def single_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
