"""Updates: events as Mercure has them.

What is JSON-LD becomes RDF, which matches subscriptions and answers queries, and is told as JSON-LD. Anything else
is
carried, and told as it came. A `type` goes with the event as a header.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import orjson

from triplewire.edge.feeds.entries import Pieces
from triplewire.edge.formats.ports import Format
from triplewire.edge.formats.sse import Sse
from triplewire.model import Event, EventHeaders, format_position
from triplewire.model.events import BODY, OpaquePayload, parse_payload
from triplewire.rdf import JSON_LD, decode, encode

TYPE = "mercure-type"
"""The header that says what the type of an update is."""
_KEYWORDS = frozenset({"@context", "@id", "@graph", "@type"})


class Updates(Sse):
    """Messages without a name, so that a browser hands them to `onmessage`, unless they have a type."""

    name = "mercure"

    @cached_property
    def marked(self) -> Format:
        return Updates(marks=True)

    def event(self, pieces: Pieces, position: int) -> bytes:
        entry = pieces.entry(position)
        kept = orjson.loads(entry["extensions"]) if entry.get("extensions") else {}
        named = f"event: {kept[TYPE]}\n" if TYPE in kept else ""
        lines = "".join(f"data: {line}\n" for line in _data(entry).split("\n"))
        return f"id: {format_position(position)}\n{named}{lines}\n".encode()


UPDATES = Updates()


def events_of(data: str, id: str | None, type: str | None, new_id: str) -> list[Event]:
    """What an update says, as an event; several where its JSON-LD has several graphs. Raises InputError."""
    headers = EventHeaders(extensions={TYPE: type} if type else {})
    media_type = _media_type(data)
    if media_type == JSON_LD.media_type:
        return decode(data.encode(), JSON_LD, headers, event_id=id, new_id=lambda: new_id)
    name = id or new_id
    return [Event(name, OpaquePayload(media_type, data.encode()).text(name), headers)]


def _media_type(data: str) -> str:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return "text/plain"
    first = value[0] if isinstance(value, list) and value else value
    linked = isinstance(first, dict) and not _KEYWORDS.isdisjoint(first)
    return JSON_LD.media_type if linked else "application/json"


def _data(entry: Mapping[str, Any]) -> str:
    id, text = entry["event"], entry["text"]
    cargo = parse_payload(id, text) if BODY in text else None
    if cargo is None:
        return encode([Event(id, text)], JSON_LD).decode()
    return cargo.body.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
