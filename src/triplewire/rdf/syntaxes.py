"""RDF syntaxes, and content negotiation among them.

A syntax is found by media type, by file name, or by an Accept header (RFC 9110, quality values included).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyoxigraph as ox

from triplewire.model.errors import UnknownMediaType

MediaRange = tuple[str, float]


def choose_offer(accept: str | None, offered: Sequence[Sequence[str]]) -> int | None:
    """Return the index of the offer that an Accept header prefers, None if it accepts none.

    An offer is a list of media types; the first is the one that would be sent. Among equals the header's order decides,
    then that of the offers; without a header the first offer is chosen.
    """
    if not accept or not accept.strip():
        return 0
    ranges = [_parse_range(part) for part in accept.split(",")]
    preferences = [_preference(each, ranges) for each in offered]
    best = max(range(len(offered)), key=preferences.__getitem__)
    return best if preferences[best][0] > 0 else None


def parse_qualities(header: str | None) -> dict[str, float]:
    """Return the quality of each name in a header such as Accept-Encoding."""
    return dict(map(_parse_range, header.split(","))) if header else {}


def _parse_range(part: str) -> MediaRange:
    essence, *parameters = (piece.strip().lower() for piece in part.split(";"))
    version = next((each[8:].strip('"') for each in parameters if each.startswith("version=")), "")
    if version.endswith("-messages"):
        # RDF Messages are a syntax of their own under the media type of another.
        essence += f"; version={version}"
    quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    try:
        value = float(quality)
    except ValueError:
        value = 0.0
    return essence, value if 0.0 <= value <= 1.0 else 0.0


def _preference(media_types: Sequence[str], ranges: Sequence[MediaRange]) -> tuple[float, int]:
    """Return the quality of the most specific range that covers the offer, and its order (0 first, then negative)."""
    covering = [(_specificity(media_types, each), quality, -index) for index, (each, quality) in enumerate(ranges)]
    specificity, quality, order = max(covering)
    return (quality, order) if specificity else (0.0, order)


def _specificity(media_types: Sequence[str], essence: str) -> int:
    if essence in media_types:
        return 3
    if essence.endswith("/*") and media_types[0].startswith(essence[:-1]):
        return 2
    return 1 if essence == "*/*" else 0


@dataclass(frozen=True)
class Syntax:
    """A concrete syntax of RDF. The first of its media types is the one that is sent."""

    name: str
    media_types: tuple[str, ...]
    graphs: bool
    """Whether it has named graphs, and so several events."""
    ending: str
    """The extension of its files."""

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


def find_syntax(content_type: str | None) -> Syntax:
    """Return the syntax of a Content-Type, whose parameters are ignored. Raises UnknownMediaType."""
    essence = (content_type or "").partition(";")[0].strip().lower()
    found = _BY_MEDIA_TYPE.get(essence)
    if found is None:
        raise UnknownMediaType(essence, tuple(syntax.media_type for syntax in SYNTAXES))
    return found


def find_file_syntax(name: str) -> Syntax:
    """Return the syntax of a file extension. Raises UnknownMediaType."""
    for syntax in SYNTAXES:
        if name.lower().endswith(syntax.ending):
            return syntax
    raise UnknownMediaType(name, tuple(syntax.ending for syntax in SYNTAXES))


def negotiate(accept: str | None, default: Syntax) -> Syntax | None:
    """Return the syntax that an Accept header prefers, among equals the default; None if it accepts none."""
    candidates = sorted(SYNTAXES, key=lambda syntax: syntax != default)
    best = choose_offer(accept, [each.media_types for each in candidates])
    return None if best is None else candidates[best]
