"""Syntaxes: the ways to write RDF that are taken and given, and how one is chosen."""

from __future__ import annotations

from dataclasses import dataclass

import pyoxigraph as ox

from triplewire.codec.accepts import preferred
from triplewire.model.errors import UnknownMediaType


@dataclass(frozen=True)
class Syntax:
    """A way to write RDF. The first of its media types is the one that we send."""

    name: str
    media_types: tuple[str, ...]
    graphs: bool
    """Whether it carries named graphs, and so several events."""
    ending: str
    """How the names of its files end."""

    @property
    def media_type(self) -> str:
        return self.media_types[0]

    @property
    def format(self) -> ox.RdfFormat:
        found = ox.RdfFormat.from_media_type(self.media_type)
        assert found is not None, f"the RDF library does not know {self.media_type}"
        return found


TURTLE = Syntax("Turtle", ("text/turtle", "application/x-turtle", "text/n3"), graphs=False, ending=".ttl")
TRIG = Syntax("TriG", ("application/trig", "application/x-trig"), graphs=True, ending=".trig")
N_TRIPLES = Syntax("N-Triples", ("application/n-triples",), graphs=False, ending=".nt")
N_QUADS = Syntax("N-Quads", ("application/n-quads", "text/x-nquads"), graphs=True, ending=".nq")
JSON_LD = Syntax("JSON-LD", ("application/ld+json",), graphs=True, ending=".jsonld")
RDF_XML = Syntax("RDF/XML", ("application/rdf+xml",), graphs=False, ending=".rdf")

SYNTAXES = (TURTLE, TRIG, N_TRIPLES, N_QUADS, JSON_LD, RDF_XML)

_BY_MEDIA_TYPE = {media_type: syntax for syntax in SYNTAXES for media_type in syntax.media_types}


def syntax_of(content_type: str | None) -> Syntax:
    """The syntax that a Content-Type names; its parameters are ignored. Raises UnknownMediaType."""
    essence = (content_type or "").partition(";")[0].strip().lower()
    found = _BY_MEDIA_TYPE.get(essence)
    if found is None:
        raise UnknownMediaType(essence, tuple(syntax.media_type for syntax in SYNTAXES))
    return found


def syntax_of_file(name: str) -> Syntax:
    """The syntax that a file's name ends in. Raises UnknownMediaType."""
    for syntax in SYNTAXES:
        if name.lower().endswith(syntax.ending):
            return syntax
    raise UnknownMediaType(name, tuple(syntax.ending for syntax in SYNTAXES))


def negotiate(accept: str | None, default: Syntax) -> Syntax | None:
    """The syntax that an Accept header likes best; None if it takes none of ours. Among equals the default wins."""
    candidates = sorted(SYNTAXES, key=lambda syntax: syntax != default)
    best = preferred(accept, [each.media_types for each in candidates])
    return None if best is None else candidates[best]
