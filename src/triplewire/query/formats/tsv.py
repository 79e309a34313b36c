"""SPARQL 1.1 Query Results TSV: terms as they are. Canonical text holds no raw tab and no raw newline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from triplewire.query.formats.columns import between, columns_of, joined, pieces, side_by_side, streamed


def rows(names: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Solutions: `v0`, `v1`, … are the terms of the names."""
    head = "\t".join(f"?{name}" for name in names).encode() + b"\n"
    return streamed(head, (_body(len(names), piece) for piece in pieces(batches)), b"")


def verdict(truth: bool) -> bytes:
    return b"true\n" if truth else b"false\n"


def _body(count: int, batch: pa.RecordBatch) -> bytes:
    texts = side_by_side(columns_of(batch, count), b"\t", batch.num_rows)
    return joined(between(texts, b"\n"), b"")
