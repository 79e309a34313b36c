"""N-Triples: a line for each triple."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from triplewire.query.formats.columns import between, columns_of, joined, pieces


def triples(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """The triples `subject`, `predicate`, `object`."""
    return (lines(piece) for piece in pieces(batches))


def lines(batch: pa.RecordBatch) -> bytes:
    """The triples of one batch."""
    subjects, predicates, objects = columns_of(batch, 3)
    return joined(between(subjects, b" ", predicates, b" ", objects, b" .\n"), b"")
