"""Events to test with."""

from __future__ import annotations

from triplewire.model import Event
from triplewire.model.terms import RDF_TYPE, XSD, iri, literal
from triplewire.storage.log.ports import Publication

EXAMPLE = "http://example.org/"


def event(number: int, value: float | None = None) -> Event:
    """A small observation that its number tells from all others."""
    subject = iri(f"{EXAMPLE}observation/{number}")
    result = literal(str(number if value is None else value), XSD + "double")
    quads = (
        (subject, RDF_TYPE, iri(f"{EXAMPLE}Observation")),
        (subject, iri(f"{EXAMPLE}result"), result),
    )
    return Event(f"{EXAMPLE}event/{number}", "\n".join("\t".join(quad) for quad in quads))


def publication(*numbers: int, stream: str = "test") -> Publication:
    """The events of these numbers, together."""
    return Publication(stream, [event(number) for number in numbers])
