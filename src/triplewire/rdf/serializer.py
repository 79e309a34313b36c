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
from triplewire.rdf.syntaxes import JSON_LD, N_QUADS, N_TRIPLES, RDF_XML, SYNTAXES, Syntax, negotiate


def to_nquads(event_id: str, text: str) -> str:
    """Return the event's text as N-Quads, without parsing it: terms hold no raw tab and no raw newline."""
    end = f" <{event_id}> .\n"
    return text.replace("\t", " ").replace("\n", end) + end


def to_ntriples(text: str) -> str:
    """Return the event's text as N-Triples."""
    return text.replace("\t", " ").replace("\n", " .\n") + " .\n"


def encode(events: Iterable[Event], syntax: Syntax) -> bytes:
    """Serialize events as one body: a named graph for each, or the union of their triples if there are no graphs.

    Raises BadRequest for terms that the syntax cannot write: triple terms in JSON-LD, control characters and
    some predicates in RDF/XML. N-Quads, TriG, N-Triples and Turtle write everything.
    """
    if syntax.graphs:
        plain, lines = N_QUADS, "".join(to_nquads(event.id, event.text) for event in events)
    else:
        plain, lines = N_TRIPLES, _union(events)
    if syntax == plain:
        return lines.encode()
    try:
        return _reserialize(lines.encode(), plain, syntax)
    except (OSError, expat.ExpatError) as error:
        raise BadRequest(f"{syntax.name} cannot write these events ({error}); request another syntax") from None


def encode_addressed(events: Iterable[StreamEvent]) -> bytes:
    """Serialize events as N-Quads, each after triples with its stream and its headers."""
    return "".join(_encode_addressed(each.stream, each.event) for each in events).encode()


def _encode_addressed(stream: str, event: Event) -> str:
    headers = event.headers
    others = extensions_to_json(headers.extensions)
    values = HeaderValues(stream, headers.source, headers.application, headers.time, extensions=others)
    return format_headers(event.id, values) + to_nquads(event.id, event.text)


def _union(events: Iterable[Event]) -> str:
    once = dict.fromkeys(line for event in events for line in event.text.split("\n"))
    return to_ntriples("\n".join(once)) if once else ""


def _reserialize(lines: bytes, plain: Syntax, syntax: Syntax) -> bytes:
    """Raises OSError or ExpatError for terms that the syntax cannot write."""
    # Lenient, because the terms were checked when they were parsed.
    body = ox.serialize(ox.parse(lines, format=plain.format, lenient=True), format=syntax.format) or b""
    if syntax == RDF_XML:
        expat.ParserCreate(namespace_separator=" ").Parse(body, True)
    return body


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
"""Prefixes of the vocabularies in documents about the broker itself."""


def expand_name(name: str) -> str:
    """Return the IRI of a prefixed name such as `dcat:Dataset`, as a term."""
    prefix, _, local = name.partition(":")
    return f"<{PREFIXES[prefix]}{local}>"


def choose_syntax(accept: str | None, default: Syntax) -> Syntax:
    """Return the syntax that an Accept header prefers, among equals the default. Raises NotAcceptable."""
    syntax = negotiate(accept, default)
    if syntax is None:
        offers = sorted(SYNTAXES, key=lambda each: each != default)
        raise NotAcceptable(accept or "", tuple(each.media_type for each in offers))
    return syntax


def write_document(lines: str, syntax: Syntax, prefixes: Mapping[str, str] = PREFIXES) -> bytes:
    """Serialize lines of N-Quads as a document; graphs are merged if the syntax has none. The same lines always give
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
    """Return each triple once, whatever graphs it is in."""
    return iter(dict.fromkeys(quad.triple for quad in quads))


@dataclass(frozen=True)
class DocumentFrame:
    """The text around the fragments of a document and between them."""

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
    """Serialize lines of N-Triples, at least one, as a fragment that stands inside the frame.

    Raises NotAcceptable for terms that the syntax cannot write: triple terms in JSON-LD, control characters and
    some predicates in RDF/XML.
    """
    try:
        body = _reserialize(lines, N_TRIPLES, syntax)
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


_RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"


def write_result_set(results: Mapping[str, Any], name: str) -> str:
    """Serialize SPARQL JSON results as N-Triples, in the result-set vocabulary of the SPARQL test suites.

    `name` begins the labels of the blank nodes.
    """
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
        for index, (variable, value) in enumerate(solution.items()):
            binding = f"{row}b{index}"
            yield row, _rs("binding"), binding
            yield binding, _rs("variable"), literal(variable)
            yield binding, _rs("value"), _result_term(value)


def _result_term(value: Mapping[str, str]) -> str:
    if value["type"] == "uri":
        return iri(value["value"])
    return literal(value["value"], value.get("datatype", XSD_STRING), value.get("xml:lang"))


def _rs(name: str) -> str:
    return iri(_RS + name)
