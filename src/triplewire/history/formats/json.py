"""SPARQL 1.1 Query Results JSON Format. Bodies of literals are copied: their escapes are those of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.history.formats.columns import (
    TermColumn,
    TermKind,
    Writers,
    binary_columns,
    concatenate,
    drop_prefix,
    join_columns,
    join_texts,
    split_batches,
    split_tagged,
    split_triples,
    split_typed,
    stream_document,
    strip_delimiters,
    write_cells,
)

_UNSAFE = r'["\\\x00-\x1f]'


def rows(names: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Solutions: `v0`, `v1`, … are the terms of the names."""
    head = orjson.dumps({"head": {"vars": list(names)}})[:-1] + b',"results":{"bindings":[\n'
    bodies = (_body(names, piece) for piece in split_batches(batches))
    return stream_document(head, bodies, b"\n]}}\n", b",\n")


def verdict(truth: bool) -> bytes:
    return orjson.dumps({"head": {}, "boolean": truth}) + b"\n"


def _body(names: Sequence[str], batch: pa.RecordBatch) -> bytes:
    keys = [b"," + orjson.dumps(name) + b":" for name in names]
    columns = binary_columns(batch, len(names))
    found = [concatenate(key, write_cells(column, _WRITERS)) for key, column in zip(keys, columns, strict=True)]
    members = drop_prefix(join_columns(found, b"", batch.num_rows), 1)
    solutions = concatenate(b"{", members, b"}")
    return join_texts(solutions, b",\n")


def _safe(texts: TermColumn) -> TermColumn:
    """Text that is not of a literal's body. What needs an escape in JSON is not allowed in it, but one never knows."""
    mask = pc.match_substring_regex(texts, _UNSAFE)
    if not pc.any(mask).as_py():
        return texts
    wrong = texts.filter(mask).to_pylist()
    escaped = pa.array([orjson.dumps(text.decode())[1:-1] for text in wrong], pa.binary())
    return pc.replace_with_mask(texts, mask, escaped)


def _iri(terms: TermColumn) -> TermColumn:
    return concatenate(b'{"type":"uri","value":"', _safe(strip_delimiters(terms)), b'"}')


def _blank(terms: TermColumn) -> TermColumn:
    return concatenate(b'{"type":"bnode","value":"', _safe(drop_prefix(terms, 2)), b'"}')


def _plain(terms: TermColumn) -> TermColumn:
    return concatenate(b'{"type":"literal","value":"', strip_delimiters(terms), b'"}')


def _typed(terms: TermColumn) -> TermColumn:
    bodies, datatypes = split_typed(terms)
    return concatenate(b'{"type":"literal","value":"', bodies, b'","datatype":"', _safe(datatypes), b'"}')


def _tagged(terms: TermColumn) -> TermColumn:
    bodies, tags = split_tagged(terms)
    tags = pc.replace_substring(_safe(tags), "--", '","its:dir":"', max_replacements=1)
    return concatenate(b'{"type":"literal","value":"', bodies, b'","xml:lang":"', tags, b'"}')


def _triple(terms: TermColumn) -> TermColumn:
    subjects, predicates, objects = (write_cells(part, _WRITERS) for part in split_triples(terms))
    opening = b'{"type":"triple","value":{"subject":'
    return concatenate(opening, subjects, b',"predicate":', predicates, b',"object":', objects, b"}}")


_WRITERS: Writers = {
    TermKind.IRI: _iri,
    TermKind.BLANK: _blank,
    TermKind.PLAIN: _plain,
    TermKind.TYPED: _typed,
    TermKind.TAGGED: _tagged,
    TermKind.TRIPLE: _triple,
}
