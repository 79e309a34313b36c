"""Result formats and content negotiation; graphs as N-Triples, Turtle, JSON-LD and RDF/XML.

Pieces of one graph form one document. A subject that continues in the next piece is named again, which all syntaxes
allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from triplewire.history.formats.columns import binary_columns, concatenate, join_texts, split_batches, stream_document
from triplewire.history.formats.solutions import CSV, JSON, TSV, XML, SolutionWriter
from triplewire.model.errors import BadRequest, NotAcceptable
from triplewire.rdf import JSON_LD, N_TRIPLES, RDF_XML, TURTLE, Syntax
from triplewire.rdf.serializer import find_frame, write_fragment
from triplewire.rdf.syntaxes import choose_offer

Batches: TypeAlias = Iterator[pa.RecordBatch]

SOLUTIONS = frozenset({"select", "ask"})
GRAPHS = frozenset({"construct", "describe"})


@dataclass(frozen=True)
class ResultFormat:
    """A format of answers. The first of its media types is the one that is sent."""

    name: str
    media_types: tuple[str, ...]
    forms: frozenset[str]
    write: Callable[[str, Sequence[str], Batches], Iterator[bytes]]
    """From the form of the query, the names of its variables and its batches to pieces of text."""

    @property
    def content_type(self) -> str:
        media_type = self.media_types[0]
        return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type


def _solutions(name: str, writer: SolutionWriter, *media_types: str) -> ResultFormat:
    return ResultFormat(name, media_types, SOLUTIONS, writer.write)


def _graph(name: str, syntax: Syntax, *media_types: str) -> ResultFormat:
    return ResultFormat(name, media_types, GRAPHS, lambda form, names, batches: _write_graph(syntax, batches))


def _write_graph(syntax: Syntax, batches: Batches) -> Iterator[bytes]:
    """Write the triples `subject`, `predicate`, `object` of the batches."""
    pieces = (_ntriples(piece) for piece in split_batches(batches))
    if syntax == N_TRIPLES:
        return pieces
    frame = find_frame(syntax)
    return stream_document(frame.head, (write_fragment(each, syntax) for each in pieces), frame.tail, frame.separator)


def _ntriples(batch: pa.RecordBatch) -> bytes:
    subjects, predicates, objects = binary_columns(batch, 3)
    return join_texts(concatenate(subjects, b" ", predicates, b" ", objects, b" .\n"), b"")


FORMATS = (
    _solutions("json", JSON, "application/sparql-results+json", "application/json"),
    _solutions("xml", XML, "application/sparql-results+xml", "application/xml", "text/xml"),
    _solutions("csv", CSV, "text/csv"),
    _solutions("tsv", TSV, "text/tab-separated-values"),
    _graph("turtle", TURTLE, "text/turtle", "application/x-turtle"),
    _graph("ntriples", N_TRIPLES, "application/n-triples", "text/plain"),
    _graph("jsonld", JSON_LD, "application/ld+json", "application/json"),
    _graph("rdfxml", RDF_XML, "application/rdf+xml", "application/xml", "text/xml"),
)
"""The first format for a form is the default."""


def choose_format(form: str, accept: str | None, name: str | None = None) -> ResultFormat:
    """Return the format named, by its short name or a media type, else the one that the Accept header prefers.

    Among equals the header's order decides, then that of FORMATS. Raises NotAcceptable or BadRequest.
    """
    offers = tuple(each for each in FORMATS if form in each.forms)
    if name is not None:
        return _find_named(name, form, offers)
    best = choose_offer(accept, [each.media_types for each in offers])
    if best is None:
        raise NotAcceptable(accept or "", tuple(each.media_types[0] for each in offers))
    return offers[best]


def _find_named(name: str, form: str, offers: tuple[ResultFormat, ...]) -> ResultFormat:
    for each in offers:
        if name.lower() in (each.name, *each.media_types):
            return each
    if any(name.lower() in (each.name, *each.media_types) for each in FORMATS):
        raise NotAcceptable(f"{form.upper()} as {name}", tuple(each.name for each in offers))
    raise BadRequest(f"the format {name!r} is not known; there are {', '.join(each.name for each in FORMATS)}")
