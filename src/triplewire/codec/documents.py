"""Documents: statements that we make ourselves, written in the syntax that somebody asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyoxigraph as ox

from triplewire.codec.accepts import preferred
from triplewire.codec.syntaxes import N_QUADS, N_TRIPLES, RDF_XML, SYNTAXES, Syntax
from triplewire.model.errors import NotAcceptable

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


def term(name: str) -> str:
    """The IRI of a prefixed name such as `dcat:Dataset`, as a term."""
    prefix, _, local = name.partition(":")
    return f"<{PREFIXES[prefix]}{local}>"


def accepted(accept: str | None, default: Syntax) -> Syntax:
    """The syntax that an Accept header likes best; the default where it does not care. Raises NotAcceptable."""
    offers = sorted(SYNTAXES, key=lambda each: each != default)
    best = preferred(accept, [each.media_types for each in offers])
    if best is None:
        raise NotAcceptable(accept or "", tuple(each.media_type for each in offers))
    return offers[best]


def document(lines: str, syntax: Syntax, prefixes: Mapping[str, str] = PREFIXES) -> bytes:
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
    return ox.serialize(_union(quads), format=syntax.format, prefixes=used) or b""


def _union(quads: Iterator[ox.Quad]) -> Iterator[ox.Triple]:
    """Each triple once, whatever graphs it is in."""
    return iter(dict.fromkeys(quad.triple for quad in quads))
