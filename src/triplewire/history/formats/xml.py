"""SPARQL Query Results XML Format. A character that XML 1.0 cannot hold becomes U+FFFD."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import quoteattr

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
    unescape,
    write_cells,
)

_START = b'<?xml version="1.0" encoding="UTF-8"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n<head>'
_ITS = '" xmlns:its="http://www.w3.org/2005/11/its" its:version="2.0" its:dir="'

_MARKUP = r'[&<>"\r\n\t]'
_ENTITIES = (
    ("&", "&amp;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ('"', "&quot;"),
    ("\r", "&#13;"),
    ("\n", "&#10;"),
    ("\t", "&#9;"),
)
_MARGIN = r"^ | $"
"""Spaces that some readers would take for indentation."""
_FORBIDDEN = r"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]"


def rows(names: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Solutions: `v0`, `v1`, … are the terms of the names."""
    variables = b"".join(b"<variable name=%b/>" % quoteattr(name).encode() for name in names)
    bodies = (_body(names, piece) for piece in split_batches(batches))
    return stream_document(_START + variables + b"</head>\n<results>\n", bodies, b"</results>\n</sparql>\n")


def verdict(truth: bool) -> bytes:
    return _START + b"</head>\n<boolean>%b</boolean>\n</sparql>\n" % (b"true" if truth else b"false")


def _body(names: Sequence[str], batch: pa.RecordBatch) -> bytes:
    openings = [b"<binding name=%b>" % quoteattr(name).encode() for name in names]
    columns = binary_columns(batch, len(names))
    found = [
        concatenate(opening, write_cells(column, _WRITERS), b"</binding>")
        for opening, column in zip(openings, columns, strict=True)
    ]
    solutions = concatenate(b"<result>", join_columns(found, b"", batch.num_rows), b"</result>\n")
    return join_texts(solutions, b"")


def _safe(texts: TermColumn) -> TermColumn:
    """Text for elements and attributes alike: line ends and tabs too would be changed in one or the other."""
    if pc.any(pc.match_substring_regex(texts, _FORBIDDEN)).as_py():
        texts = pc.replace_substring_regex(texts, _FORBIDDEN, b"\xef\xbf\xbd")
    if pc.any(pc.match_substring_regex(texts, _MARKUP)).as_py():
        for character, entity in _ENTITIES:
            texts = pc.replace_substring(texts, character, entity)
    if pc.any(pc.match_substring_regex(texts, _MARGIN)).as_py():
        texts = pc.replace_substring_regex(texts, _MARGIN, "&#32;")
    return texts


def _iri(terms: TermColumn) -> TermColumn:
    return concatenate(b"<uri>", _safe(strip_delimiters(terms)), b"</uri>")


def _blank(terms: TermColumn) -> TermColumn:
    return concatenate(b"<bnode>", _safe(drop_prefix(terms, 2)), b"</bnode>")


def _plain(terms: TermColumn) -> TermColumn:
    return concatenate(b"<literal>", _safe(unescape(strip_delimiters(terms))), b"</literal>")


def _typed(terms: TermColumn) -> TermColumn:
    bodies, datatypes = split_typed(terms)
    return concatenate(b'<literal datatype="', _safe(datatypes), b'">', _safe(unescape(bodies)), b"</literal>")


def _tagged(terms: TermColumn) -> TermColumn:
    bodies, tags = split_tagged(terms)
    tags = pc.replace_substring(_safe(tags), "--", _ITS, max_replacements=1)
    return concatenate(b'<literal xml:lang="', tags, b'">', _safe(unescape(bodies)), b"</literal>")


def _triple(terms: TermColumn) -> TermColumn:
    subjects, predicates, objects = (write_cells(part, _WRITERS) for part in split_triples(terms))
    inside = (subjects, b"</subject><predicate>", predicates, b"</predicate><object>", objects)
    return concatenate(b"<triple><subject>", *inside, b"</object></triple>")


_WRITERS: Writers = {
    TermKind.IRI: _iri,
    TermKind.BLANK: _blank,
    TermKind.PLAIN: _plain,
    TermKind.TYPED: _typed,
    TermKind.TAGGED: _tagged,
    TermKind.TRIPLE: _triple,
}
