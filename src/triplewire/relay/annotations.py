"""Annotations: the enricher that adds the same triples to every event, about the event itself or about anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from triplewire.codec import TURTLE, decode, ntriples
from triplewire.model import Event
from triplewire.model.errors import BadRequest

_EVENT = "urn:triplewire:this-event"
"""Stands for the event in the triples until there is one."""


class Annotation:
    """Adds the triples of its option `turtle`, in which `<>` is the event."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Raises BadRequest or MalformedRdf for options that are not just `turtle`, with triples in it."""
        text = options.get("turtle")
        if set(options) != {"turtle"} or not isinstance(text, str):
            raise BadRequest("annotation takes `turtle`, a text of triples in which <> is the event, and nothing else")
        found = decode(f"BASE <{_EVENT}>\n{text}".encode(), TURTLE, event_id=_EVENT)
        self._triples = "".join(ntriples(each.text) for each in found)

    def enrich(self, events: Sequence[Event]) -> Sequence[str]:
        return [self._triples.replace(f"<{_EVENT}>", f"<{each.id}>") for each in events]
