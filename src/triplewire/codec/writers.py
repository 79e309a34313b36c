"""Writers: events become a body of RDF."""

from __future__ import annotations

from collections.abc import Iterable
from xml.parsers import expat

import pyoxigraph as ox

from triplewire.codec.extensions import to_json
from triplewire.codec.headers import Said, format_headers
from triplewire.codec.syntaxes import N_QUADS, N_TRIPLES, RDF_XML, Syntax
from triplewire.model import Event, StreamEvent
from triplewire.model.errors import BadRequest


def nquads(event_id: str, text: str) -> str:
    """The event's text as N-Quads lines, without parsing it: terms hold no raw tab and no raw newline."""
    end = f" <{event_id}> .\n"
    return text.replace("\t", " ").replace("\n", end) + end


def ntriples(text: str) -> str:
    """The event's text as N-Triples lines."""
    return text.replace("\t", " ").replace("\n", " .\n") + " .\n"


def encode(events: Iterable[Event], syntax: Syntax) -> bytes:
    """The events as one body: a named graph for each, or the union of their triples where there are no graphs.

    Raises BadRequest for terms that the syntax cannot write: triple terms in JSON-LD, control characters and
    some predicates in RDF/XML. N-Quads, TriG, N-Triples and Turtle write everything.
    """
    if syntax.graphs:
        plain, lines = N_QUADS, "".join(nquads(event.id, event.text) for event in events)
    else:
        plain, lines = N_TRIPLES, _union(events)
    if syntax == plain:
        return lines.encode()
    return _rewritten(lines.encode(), plain, syntax)


def encode_addressed(events: Iterable[StreamEvent]) -> bytes:
    """The events as N-Quads, each after triples that say its stream and its headers."""
    return "".join(_addressed(each.stream, each.event) for each in events).encode()


def _addressed(stream: str, event: Event) -> str:
    headers = event.headers
    others = to_json(headers.extensions)
    said = Said(stream, headers.source, headers.application, headers.time, extensions=others)
    return format_headers(event.id, said) + nquads(event.id, event.text)


def _union(events: Iterable[Event]) -> str:
    once = dict.fromkeys(line for event in events for line in event.text.split("\n"))
    return ntriples("\n".join(once)) if once else ""


def _rewritten(lines: bytes, plain: Syntax, syntax: Syntax) -> bytes:
    # Lenient, because the terms were checked when they came in.
    quads = ox.parse(lines, format=plain.format, lenient=True)
    try:
        body = ox.serialize(quads, format=syntax.format) or b""
        if syntax == RDF_XML:
            expat.ParserCreate(namespace_separator=" ").Parse(body, True)
    except (OSError, expat.ExpatError) as error:
        raise BadRequest(f"{syntax.name} cannot write these events ({error}); ask for another syntax") from None
    return body
