"""SPARQL 1.1 Query Results CSV: the text of terms alone. Unbound is an empty field, an empty text is a quoted one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.query.formats.columns import (
    Column,
    Kind,
    Writers,
    between,
    cells,
    columns_of,
    inner,
    joined,
    pieces,
    side_by_side,
    streamed,
    tagged,
    typed,
    unescaped,
)

_NEEDS_QUOTES = r'[",\r\n]|^$'


def rows(names: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Solutions: `v0`, `v1`, … are the terms of the names."""
    return streamed(",".join(names).encode() + b"\r\n", (_body(len(names), piece) for piece in pieces(batches)), b"")


def verdict(truth: bool) -> bytes:
    return b"true\r\n" if truth else b"false\r\n"


def _body(count: int, batch: pa.RecordBatch) -> bytes:
    fields = [cells(column, _WRITERS) for column in columns_of(batch, count)]
    return joined(between(side_by_side(fields, b",", batch.num_rows), b"\r\n"), b"")


def _field(texts: Column) -> Column:
    mask = pc.match_substring_regex(texts, _NEEDS_QUOTES)
    if not pc.any(mask).as_py():
        return texts
    quoted = between(b'"', pc.replace_substring(texts.filter(mask), '"', '""'), b'"')
    return pc.replace_with_mask(texts, mask, quoted)


_WRITERS: Writers = {
    Kind.IRI: lambda terms: _field(inner(terms)),
    Kind.BLANK: _field,
    Kind.PLAIN: lambda terms: _field(unescaped(inner(terms))),
    Kind.TYPED: lambda terms: _field(unescaped(typed(terms)[0])),
    Kind.TAGGED: lambda terms: _field(unescaped(tagged(terms)[0])),
    Kind.TRIPLE: _field,
}
