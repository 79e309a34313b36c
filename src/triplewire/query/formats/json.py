"""SPARQL 1.1 Query Results JSON Format. Bodies of literals are copied: their escapes are those of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.query.formats.columns import (
    Column,
    Kind,
    Writers,
    after,
    between,
    cells,
    columns_of,
    inner,
    joined,
    pieces,
    side_by_side,
    streamed,
    tagged,
    triple,
    typed,
)

_UNSAFE = r'["\\\x00-\x1f]'


def rows(names: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Solutions: `v0`, `v1`, … are the terms of the names."""
    head = orjson.dumps({"head": {"vars": list(names)}})[:-1] + b',"results":{"bindings":[\n'
    bodies = (_body(names, piece) for piece in pieces(batches))
    return streamed(head, bodies, b"\n]}}\n", b",\n")


def verdict(truth: bool) -> bytes:
    return orjson.dumps({"head": {}, "boolean": truth}) + b"\n"


def _body(names: Sequence[str], batch: pa.RecordBatch) -> bytes:
    keys = [b"," + orjson.dumps(name) + b":" for name in names]
    columns = columns_of(batch, len(names))
    found = [between(key, cells(column, _WRITERS)) for key, column in zip(keys, columns, strict=True)]
    members = after(side_by_side(found, b"", batch.num_rows), 1)
    solutions = between(b"{", members, b"}")
    return joined(solutions, b",\n")


def _safe(texts: Column) -> Column:
    """Text that is not of a literal's body. What needs an escape in JSON is not allowed in it, but one never knows."""
    mask = pc.match_substring_regex(texts, _UNSAFE)
    if not pc.any(mask).as_py():
        return texts
    wrong = texts.filter(mask).to_pylist()
    escaped = pa.array([orjson.dumps(text.decode())[1:-1] for text in wrong], pa.binary())
    return pc.replace_with_mask(texts, mask, escaped)


def _iri(terms: Column) -> Column:
    return between(b'{"type":"uri","value":"', _safe(inner(terms)), b'"}')


def _blank(terms: Column) -> Column:
    return between(b'{"type":"bnode","value":"', _safe(after(terms, 2)), b'"}')


def _plain(terms: Column) -> Column:
    return between(b'{"type":"literal","value":"', inner(terms), b'"}')


def _typed(terms: Column) -> Column:
    bodies, datatypes = typed(terms)
    return between(b'{"type":"literal","value":"', bodies, b'","datatype":"', _safe(datatypes), b'"}')


def _tagged(terms: Column) -> Column:
    bodies, tags = tagged(terms)
    tags = pc.replace_substring(_safe(tags), "--", '","its:dir":"', max_replacements=1)
    return between(b'{"type":"literal","value":"', bodies, b'","xml:lang":"', tags, b'"}')


def _triple(terms: Column) -> Column:
    subjects, predicates, objects = (cells(part, _WRITERS) for part in triple(terms))
    opening = b'{"type":"triple","value":{"subject":'
    return between(opening, subjects, b',"predicate":', predicates, b',"object":', objects, b"}}")


_WRITERS: Writers = {
    Kind.IRI: _iri,
    Kind.BLANK: _blank,
    Kind.PLAIN: _plain,
    Kind.TYPED: _typed,
    Kind.TAGGED: _tagged,
    Kind.TRIPLE: _triple,
}
