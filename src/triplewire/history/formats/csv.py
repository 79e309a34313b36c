"""SPARQL 1.1 Query Results CSV: the text of terms alone. Unbound is an empty field, an empty text is a quoted one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.history.formats.columns import (
    TermColumn,
    TermKind,
    Writers,
    binary_columns,
    concatenate,
    join_columns,
    join_texts,
    split_batches,
    split_tagged,
    split_typed,
    stream_document,
    strip_delimiters,
    unescape,
    write_cells,
)

_NEEDS_QUOTES = r'[",\r\n]|^$'


def rows(names: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Solutions: `v0`, `v1`, … are the terms of the names."""
    return stream_document(
        ",".join(names).encode() + b"\r\n", (_body(len(names), piece) for piece in split_batches(batches)), b""
    )


def verdict(truth: bool) -> bytes:
    return b"true\r\n" if truth else b"false\r\n"


def _body(count: int, batch: pa.RecordBatch) -> bytes:
    fields = [write_cells(column, _WRITERS) for column in binary_columns(batch, count)]
    return join_texts(concatenate(join_columns(fields, b",", batch.num_rows), b"\r\n"), b"")


def _field(texts: TermColumn) -> TermColumn:
    mask = pc.match_substring_regex(texts, _NEEDS_QUOTES)
    if not pc.any(mask).as_py():
        return texts
    quoted = concatenate(b'"', pc.replace_substring(texts.filter(mask), '"', '""'), b'"')
    return pc.replace_with_mask(texts, mask, quoted)


_WRITERS: Writers = {
    TermKind.IRI: lambda terms: _field(strip_delimiters(terms)),
    TermKind.BLANK: _field,
    TermKind.PLAIN: lambda terms: _field(unescape(strip_delimiters(terms))),
    TermKind.TYPED: lambda terms: _field(unescape(split_typed(terms)[0])),
    TermKind.TAGGED: lambda terms: _field(unescape(split_tagged(terms)[0])),
    TermKind.TRIPLE: _field,
}
