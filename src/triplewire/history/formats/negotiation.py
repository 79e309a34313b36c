"""Result formats and content negotiation; graphs as N-Triples, Turtle, JSON-LD and RDF/XML.

Pieces of one graph form one document. A subject that continues in the next piece is named again, which all syntaxes
allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TypeAlias

import pyarrow as pa

from triplewire.history.formats import csv, json, tsv, xml
from triplewire.history.formats.columns import binary_columns, concatenate, join_texts, split_batches, stream_document
from triplewire.model.errors import BadRequest, NotAcceptable
from triplewire.rdf import JSON_LD, RDF_XML, TURTLE, Syntax
from triplewire.rdf.serializer import DocumentFrame, find_frame, write_fragment
from triplewire.rdf.syntaxes import choose_offer

# N-Triples: a line for each triple.


def write_ntriples(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """The triples `subject`, `predicate`, `object`."""
    return (ntriples_lines(piece) for piece in split_batches(batches))


def ntriples_lines(batch: pa.RecordBatch) -> bytes:
    """The triples of one batch."""
    subjects, predicates, objects = binary_columns(batch, 3)
    return join_texts(concatenate(subjects, b" ", predicates, b" ", objects, b" .\n"), b"")


# Graphs in the syntaxes that the codec writes: Turtle, JSON-LD and RDF/XML, a piece at a time.
#
# Pieces of one graph are put together into one document. A subject that goes on in the next piece is named again
# there, which all three allow.


def write_turtle(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    return _write_graph(TURTLE, batches)


def write_json_ld(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    return _write_graph(JSON_LD, batches)


def write_rdf_xml(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    return _write_graph(RDF_XML, batches)


def _write_graph(syntax: Syntax, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    around: DocumentFrame = find_frame(syntax)
    bodies = (write_fragment(ntriples_lines(piece), syntax) for piece in split_batches(batches))
    return stream_document(around.head, bodies, around.tail, around.separator)


Batches: TypeAlias = Iterator[pa.RecordBatch]

SOLUTIONS = frozenset({"select", "ask"})
GRAPHS = frozenset({"construct", "describe"})


@dataclass(frozen=True)
class ResultFormat:
    """A format. The first of its media types is the one that we send."""

    name: str
    media_types: tuple[str, ...]
    forms: frozenset[str]
    write: Callable[[str, Sequence[str], Batches], Iterator[bytes]]
    """From the form of the query, the names of its variables and its batches to pieces of text."""

    @property
    def content_type(self) -> str:
        media_type = self.media_types[0]
        return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type


def _solutions(name: str, module: ModuleType, *media_types: str) -> ResultFormat:
    def write(form: str, names: Sequence[str], batches: Batches) -> Iterator[bytes]:
        found: Iterator[bytes] = module.rows(names, batches) if form == "select" else _verdict(module, batches)
        return found

    return ResultFormat(name, media_types, SOLUTIONS, write)


def _verdict(module: ModuleType, batches: Batches) -> Iterator[bytes]:
    yield module.verdict(any(any(batch.column(0).to_pylist()) for batch in batches))


def _graph(name: str, triples: Callable[[Batches], Iterator[bytes]], *media_types: str) -> ResultFormat:
    return ResultFormat(name, media_types, GRAPHS, lambda form, names, batches: triples(batches))


FORMATS = (
    _solutions("json", json, "application/sparql-results+json", "application/json"),
    _solutions("xml", xml, "application/sparql-results+xml", "application/xml", "text/xml"),
    _solutions("csv", csv, "text/csv"),
    _solutions("tsv", tsv, "text/tab-separated-values"),
    _graph("turtle", write_turtle, "text/turtle", "application/x-turtle"),
    _graph("ntriples", write_ntriples, "application/n-triples", "text/plain"),
    _graph("jsonld", write_json_ld, "application/ld+json", "application/json"),
    _graph("rdfxml", write_rdf_xml, "application/rdf+xml", "application/xml", "text/xml"),
)
"""The first for a form is the one for clients that do not say what they take."""


def list_formats(form: str) -> tuple[ResultFormat, ...]:
    return tuple(each for each in FORMATS if form in each.forms)


def choose_format(form: str, accept: str | None, name: str | None = None) -> ResultFormat:
    """The format of an answer: the one named, by its short name or a media type, else what the Accept header likes
    best. Among equals the header's order decides, then ours. Raises NotAcceptable or BadRequest."""
    there = list_formats(form)
    if name is not None:
        return _find_named(name, form, there)
    liked = choose_offer(accept, [each.media_types for each in there])
    if liked is None:
        raise NotAcceptable(accept or "", tuple(each.media_types[0] for each in there))
    return there[liked]


def _find_named(name: str, form: str, there: tuple[ResultFormat, ...]) -> ResultFormat:
    for each in there:
        if name.lower() == each.name or name.lower() in each.media_types:
            return each
    if any(name.lower() in (each.name, *each.media_types) for each in FORMATS):
        raise NotAcceptable(f"{form.upper()} as {name}", tuple(each.name for each in there))
    raise BadRequest(f"the format {name!r} is not known; there are {', '.join(each.name for each in FORMATS)}")
