"""Choices: which formats there are for the answer of a query, and which of them a client likes best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TypeAlias

import pyarrow as pa

from triplewire.codec.accepts import preferred
from triplewire.errors import BadRequest, NotAcceptable
from triplewire.query.formats import csv, graphs, json, ntriples, tsv, xml

Batches: TypeAlias = Iterator[pa.RecordBatch]

SOLUTIONS = frozenset({"select", "ask"})
GRAPHS = frozenset({"construct", "describe"})


@dataclass(frozen=True)
class Format:
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


def _solutions(name: str, module: ModuleType, *media_types: str) -> Format:
    def write(form: str, names: Sequence[str], batches: Batches) -> Iterator[bytes]:
        found: Iterator[bytes] = module.rows(names, batches) if form == "select" else _verdict(module, batches)
        return found

    return Format(name, media_types, SOLUTIONS, write)


def _verdict(module: ModuleType, batches: Batches) -> Iterator[bytes]:
    yield module.verdict(any(any(batch.column(0).to_pylist()) for batch in batches))


def _graph(name: str, triples: Callable[[Batches], Iterator[bytes]], *media_types: str) -> Format:
    return Format(name, media_types, GRAPHS, lambda form, names, batches: triples(batches))


FORMATS = (
    _solutions("json", json, "application/sparql-results+json", "application/json"),
    _solutions("xml", xml, "application/sparql-results+xml", "application/xml", "text/xml"),
    _solutions("csv", csv, "text/csv"),
    _solutions("tsv", tsv, "text/tab-separated-values"),
    _graph("turtle", graphs.turtle, "text/turtle", "application/x-turtle"),
    _graph("ntriples", ntriples.triples, "application/n-triples", "text/plain"),
    _graph("jsonld", graphs.json_ld, "application/ld+json", "application/json"),
    _graph("rdfxml", graphs.rdf_xml, "application/rdf+xml", "application/xml", "text/xml"),
)
"""The first for a form is the one for clients that do not say what they take."""


def formats_of(form: str) -> tuple[Format, ...]:
    return tuple(each for each in FORMATS if form in each.forms)


def choose(form: str, accept: str | None, name: str | None = None) -> Format:
    """The format of an answer: the one named, by its short name or a media type, else what the Accept header likes
    best. Among equals the header's order decides, then ours. Raises NotAcceptable or BadRequest."""
    there = formats_of(form)
    if name is not None:
        return _named(name, form, there)
    liked = preferred(accept, [each.media_types for each in there])
    if liked is None:
        raise NotAcceptable(accept or "", tuple(each.media_types[0] for each in there))
    return there[liked]


def _named(name: str, form: str, there: tuple[Format, ...]) -> Format:
    for each in there:
        if name.lower() == each.name or name.lower() in each.media_types:
            return each
    if any(name.lower() in (each.name, *each.media_types) for each in FORMATS):
        raise NotAcceptable(f"{form.upper()} as {name}", tuple(each.name for each in there))
    raise BadRequest(f"the format {name!r} is not known; there are {', '.join(each.name for each in FORMATS)}")
