"""Graphs: triples that belong to no event, written a piece at a time so that pieces make one document."""

from __future__ import annotations

from dataclasses import dataclass
from xml.parsers import expat

import pyoxigraph as ox

from triplewire.codec.syntaxes import JSON_LD, N_TRIPLES, RDF_XML, Syntax
from triplewire.model.errors import NotAcceptable


@dataclass(frozen=True)
class Frame:
    """What stands around the pieces of a document and between them."""

    head: bytes = b""
    separator: bytes = b""
    tail: bytes = b""


_XML_HEAD = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    b'xmlns:its="http://www.w3.org/2005/11/its">\n'
)
_FRAMES = {JSON_LD: Frame(b"[\n", b",\n", b"\n]\n"), RDF_XML: Frame(_XML_HEAD, b"", b"</rdf:RDF>\n")}


def frame(syntax: Syntax) -> Frame:
    return _FRAMES.get(syntax, Frame())


def inside(lines: bytes, syntax: Syntax) -> bytes:
    """Lines of N-Triples as what stands inside of the frame. There must be at least one line.

    Raises NotAcceptable for terms that the syntax cannot write: triple terms in JSON-LD, control characters and
    some predicates in RDF/XML.
    """
    # Lenient, because the terms were checked when they came in.
    triples = ox.parse(lines, format=N_TRIPLES.format, lenient=True)
    try:
        body = ox.serialize(triples, format=syntax.format) or b""
        if syntax == RDF_XML:
            expat.ParserCreate(namespace_separator=" ").Parse(body, True)
    except (OSError, expat.ExpatError) as error:
        reason = f"this graph as {syntax.name} ({error})"
        raise NotAcceptable(reason, ("text/turtle", "application/n-triples")) from None
    return _CUTS.get(syntax, bytes)(body)


def _cut_array(body: bytes) -> bytes:
    return body.strip()[1:-1]


def _cut_element(body: bytes) -> bytes:
    start = body.index(b">", body.index(b"<rdf:RDF")) + 1
    return body[start : body.rindex(b"</rdf:RDF>")].lstrip(b"\n")


_CUTS = {JSON_LD: _cut_array, RDF_XML: _cut_element}
