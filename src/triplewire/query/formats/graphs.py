"""Graphs in the syntaxes that the codec writes: Turtle, JSON-LD and RDF/XML, a piece at a time.

Pieces of one graph are put together into one document. A subject that goes on in the next piece is named again there,
which all three allow.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from triplewire.codec import JSON_LD, RDF_XML, TURTLE, Syntax
from triplewire.codec.graphs import Frame, frame, inside
from triplewire.query.formats.columns import pieces, streamed
from triplewire.query.formats.ntriples import lines


def turtle(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    return _document(TURTLE, batches)


def json_ld(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    return _document(JSON_LD, batches)


def rdf_xml(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    return _document(RDF_XML, batches)


def _document(syntax: Syntax, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    around: Frame = frame(syntax)
    bodies = (inside(lines(piece), syntax) for piece in pieces(batches))
    return streamed(around.head, bodies, around.tail, around.separator)
