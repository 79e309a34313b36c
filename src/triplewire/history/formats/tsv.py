"""SPARQL 1.1 Query Results TSV: terms in canonical text, which holds no raw tab and no raw newline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from triplewire.history.formats.columns import (
    binary_columns,
    concatenate,
    join_columns,
    join_texts,
    split_batches,
    stream_document,
)


def rows(names: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Solutions: `v0`, `v1`, … are the terms of the names."""
    head = "\t".join(f"?{name}" for name in names).encode() + b"\n"
    return stream_document(head, (_body(len(names), piece) for piece in split_batches(batches)), b"")


def verdict(truth: bool) -> bytes:
    return b"true\n" if truth else b"false\n"


def _body(count: int, batch: pa.RecordBatch) -> bytes:
    texts = join_columns(binary_columns(batch, count), b"\t", batch.num_rows)
    return join_texts(concatenate(texts, b"\n"), b"")
