"""SPARQL Query Results XML Format. A character that XML 1.0 cannot hold becomes U+FFFD."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import quoteattr

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
    unescaped,
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
    bodies = (_body(names, piece) for piece in pieces(batches))
    return streamed(_START + variables + b"</head>\n<results>\n", bodies, b"</results>\n</sparql>\n")


def verdict(truth: bool) -> bytes:
    return _START + b"</head>\n<boolean>%b</boolean>\n</sparql>\n" % (b"true" if truth else b"false")


def _body(names: Sequence[str], batch: pa.RecordBatch) -> bytes:
    openings = [b"<binding name=%b>" % quoteattr(name).encode() for name in names]
    columns = columns_of(batch, len(names))
    found = [
        between(opening, cells(column, _WRITERS), b"</binding>")
        for opening, column in zip(openings, columns, strict=True)
    ]
    solutions = between(b"<result>", side_by_side(found, b"", batch.num_rows), b"</result>\n")
    return joined(solutions, b"")


def _safe(texts: Column) -> Column:
    """Text for elements and attributes alike: line ends and tabs too would be changed in one or the other."""
    if pc.any(pc.match_substring_regex(texts, _FORBIDDEN)).as_py():
        texts = pc.replace_substring_regex(texts, _FORBIDDEN, b"\xef\xbf\xbd")
    if pc.any(pc.match_substring_regex(texts, _MARKUP)).as_py():
        for character, entity in _ENTITIES:
            texts = pc.replace_substring(texts, character, entity)
    if pc.any(pc.match_substring_regex(texts, _MARGIN)).as_py():
        texts = pc.replace_substring_regex(texts, _MARGIN, "&#32;")
    return texts


def _iri(terms: Column) -> Column:
    return between(b"<uri>", _safe(inner(terms)), b"</uri>")


def _blank(terms: Column) -> Column:
    return between(b"<bnode>", _safe(after(terms, 2)), b"</bnode>")


def _plain(terms: Column) -> Column:
    return between(b"<literal>", _safe(unescaped(inner(terms))), b"</literal>")


def _typed(terms: Column) -> Column:
    bodies, datatypes = typed(terms)
    return between(b'<literal datatype="', _safe(datatypes), b'">', _safe(unescaped(bodies)), b"</literal>")


def _tagged(terms: Column) -> Column:
    bodies, tags = tagged(terms)
    tags = pc.replace_substring(_safe(tags), "--", _ITS, max_replacements=1)
    return between(b'<literal xml:lang="', tags, b'">', _safe(unescaped(bodies)), b"</literal>")


def _triple(terms: Column) -> Column:
    subjects, predicates, objects = (cells(part, _WRITERS) for part in triple(terms))
    inside = (subjects, b"</subject><predicate>", predicates, b"</predicate><object>", objects)
    return between(b"<triple><subject>", *inside, b"</object></triple>")


_WRITERS: Writers = {
    Kind.IRI: _iri,
    Kind.BLANK: _blank,
    Kind.PLAIN: _plain,
    Kind.TYPED: _typed,
    Kind.TAGGED: _tagged,
    Kind.TRIPLE: _triple,
}
