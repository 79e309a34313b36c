"""RDF Message Logs: an event is a message, which `MESSAGE` ends.

Positions and what is about the connection itself stand in comments, as in plain documents of RDF, so that they are
no
messages. Where the syntax has graphs each event comes with triples about it; else with nothing but its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from triplewire.edge.feeds.entries import Pieces
from triplewire.edge.formats.rdf import Rdf
from triplewire.rdf import N_QUADS, N_TRIPLES, TRIG, TURTLE, to_ntriples
from triplewire.rdf.messages import END, HEAD, message_media_type


class Log(Rdf):
    """Messages in one of the syntaxes that have them."""

    head = HEAD

    @property
    def media_type(self) -> str:
        return message_media_type(self._syntax)

    def _message(self, name: str, fields: Mapping[str, Any], statements: str) -> bytes:
        told = super()._message(name, fields, statements)
        return told[:-1] + END + b"\n" if statements else told

    def _whole(self, pieces: Pieces, position: int) -> str:
        if self._syntax.graphs:
            return super()._whole(pieces, position)
        return to_ntriples(pieces.entry(position)["text"])


MESSAGE_LOGS = (
    Log("messages-nquads", N_QUADS),
    Log("messages-trig", TRIG),
    Log("messages-turtle", TURTLE),
    Log("messages-ntriples", N_TRIPLES),
)
