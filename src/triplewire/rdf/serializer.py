"""RDF serialization: events, described resources, graphs in fragments, and SPARQL result sets.

The same lines always give the same bytes. Terms were checked when they were parsed, so that the library reads them
leniently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.parsers import expat

import pyoxigraph as ox

from triplewire.model import Event, StreamEvent
from triplewire.model.errors import BadRequest, NotAcceptable
from triplewire.model.terms import RDF_TYPE, XSD, XSD_STRING, iri, literal
from triplewire.rdf.headers import HeaderValues, extensions_to_json, format_headers
from triplewire.rdf.syntaxes import JSON_LD, N_QUADS, N_TRIPLES, RDF_XML, SYNTAXES, Syntax, choose_offer


def to_nquads(event_id: str, text: str) -> str:
    """The event's text as N-Quads lines, without parsing it: terms hold no raw tab and no raw newline."""
    end = f" <{event_id}> .\n"
    return text.replace("\t", " ").replace("\n", end) + end


def to_ntriples(text: str) -> str:
    """The event's text as N-Triples lines."""
    return text.replace("\t", " ").replace("\n", " .\n") + " .\n"


def encode(events: Iterable[Event], syntax: Syntax) -> bytes:
    """The events as one body: a named graph for each, or the union of their triples where there are no graphs.

    Raises BadRequest for terms that the syntax cannot write: triple terms in JSON-LD, control characters and
    some predicates in RDF/XML. N-Quads, TriG, N-Triples and Turtle write everything.
    """
    if syntax.graphs:
        plain, lines = N_QUADS, "".join(to_nquads(event.id, event.text) for event in events)
    else:
        plain, lines = N_TRIPLES, _union(events)
    if syntax == plain:
        return lines.encode()
    return _reserialize(lines.encode(), plain, syntax)


def encode_addressed(events: Iterable[StreamEvent]) -> bytes:
    """The events as N-Quads, each after triples that say its stream and its headers."""
    return "".join(_encode_addressed(each.stream, each.event) for each in events).encode()


def _encode_addressed(stream: str, event: Event) -> str:
    headers = event.headers
    others = extensions_to_json(headers.extensions)
    said = HeaderValues(stream, headers.source, headers.application, headers.time, extensions=others)
    return format_headers(event.id, said) + to_nquads(event.id, event.text)


def _union(events: Iterable[Event]) -> str:
    once = dict.fromkeys(line for event in events for line in event.text.split("\n"))
    return to_ntriples("\n".join(once)) if once else ""


def _reserialize(lines: bytes, plain: Syntax, syntax: Syntax) -> bytes:
    # Lenient, because the terms were checked when they came in.
    quads = ox.parse(lines, format=plain.format, lenient=True)
    try:
        body = ox.serialize(quads, format=syntax.format) or b""
        if syntax == RDF_XML:
            expat.ParserCreate(namespace_separator=" ").Parse(body, True)
    except (OSError, expat.ExpatError) as error:
        raise BadRequest(f"{syntax.name} cannot write these events ({error}); ask for another syntax") from None
    return body


# Documents: statements that we make ourselves, written in the syntax that somebody asks for.

PREFIXES = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "ldes": "https://w3id.org/ldes#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "sd": "http://www.w3.org/ns/sparql-service-description#",
    "tree": "https://w3id.org/tree#",
    "tw": "https://triplewire.dev/ns#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "void": "http://rdfs.org/ns/void#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
"""Of the vocabularies that we describe ourselves with."""


def expand_name(name: str) -> str:
    """The IRI of a prefixed name such as `dcat:Dataset`, as a term."""
    prefix, _, local = name.partition(":")
    return f"<{PREFIXES[prefix]}{local}>"


def choose_syntax(accept: str | None, default: Syntax) -> Syntax:
    """The syntax that an Accept header likes best; the default where it does not care. Raises NotAcceptable."""
    offers = sorted(SYNTAXES, key=lambda each: each != default)
    best = choose_offer(accept, [each.media_types for each in offers])
    if best is None:
        raise NotAcceptable(accept or "", tuple(each.media_type for each in offers))
    return offers[best]


def write_document(lines: str, syntax: Syntax, prefixes: Mapping[str, str] = PREFIXES) -> bytes:
    """Lines of N-Quads as a document. Where the syntax has no graphs all of them are one. The same lines are always
    the same bytes."""
    if syntax == N_QUADS:
        return lines.encode()
    quads = ox.parse(lines.encode(), format=N_QUADS.format, lenient=True)
    used = (
        None
        if syntax in (N_TRIPLES, RDF_XML)
        else {name: address for name, address in prefixes.items() if address in lines}
    )
    if syntax.graphs:
        return ox.serialize(quads, format=syntax.format, prefixes=used) or b""
    return ox.serialize(_merge_graphs(quads), format=syntax.format, prefixes=used) or b""


def _merge_graphs(quads: Iterator[ox.Quad]) -> Iterator[ox.Triple]:
    """Each triple once, whatever graphs it is in."""
    return iter(dict.fromkeys(quad.triple for quad in quads))


# Graphs: triples that belong to no event, written a piece at a time so that pieces make one document.


@dataclass(frozen=True)
class DocumentFrame:
    """What stands around the pieces of a document and between them."""

    head: bytes = b""
    separator: bytes = b""
    tail: bytes = b""


_XML_HEAD = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    b'xmlns:its="http://www.w3.org/2005/11/its">\n'
)
_FRAMES = {JSON_LD: DocumentFrame(b"[\n", b",\n", b"\n]\n"), RDF_XML: DocumentFrame(_XML_HEAD, b"", b"</rdf:RDF>\n")}


def find_frame(syntax: Syntax) -> DocumentFrame:
    return _FRAMES.get(syntax, DocumentFrame())


def write_fragment(lines: bytes, syntax: Syntax) -> bytes:
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


# Solutions as RDF, in the vocabulary that the SPARQL test suites use for them.

_RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"


def write_result_set(results: Mapping[str, Any], name: str) -> str:
    """A SPARQL JSON results document as N-Triples. `name` begins the labels of its blank nodes."""
    return "".join(
        f"{subject} {predicate} {obj} .\n" for subject, predicate, obj in _result_triples(results, f"_:{name}")
    )


def _result_triples(results: Mapping[str, Any], root: str) -> Iterator[tuple[str, str, str]]:
    yield root, RDF_TYPE, _rs("ResultSet")
    if "boolean" in results:
        yield root, _rs("boolean"), literal(str(results["boolean"]).lower(), XSD + "boolean")
        return
    for variable in results["head"]["vars"]:
        yield root, _rs("resultVariable"), literal(variable)
    for number, solution in enumerate(results["results"]["bindings"]):
        row = f"{root}r{number}"
        yield root, _rs("solution"), row
        for place, (variable, value) in enumerate(solution.items()):
            binding = f"{row}b{place}"
            yield row, _rs("binding"), binding
            yield binding, _rs("variable"), literal(variable)
            yield binding, _rs("value"), _result_term(value)


def _result_term(value: Mapping[str, str]) -> str:
    if value["type"] == "uri":
        return iri(value["value"])
    return literal(value["value"], value.get("datatype", XSD_STRING), value.get("xml:lang"))


def _rs(name: str) -> str:
    return iri(_RS + name)
