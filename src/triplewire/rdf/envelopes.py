"""Envelopes: formats that hold many items in one body, each accepted or refused by itself.

Ztreamy items, lines of JSON, CloudEvents, Jelly frames, RDF Messages, and plain N-Quads without an end. A body that
is not RDF becomes one event with an opaque payload.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import orjson

from triplewire.model import Event, EventHeaders
from triplewire.model.errors import BadRequest, UnknownMediaType
from triplewire.model.events import OpaquePayload
from triplewire.rdf import cloudevents, jelly, messages, ztreamy
from triplewire.rdf.headers import EXTENSIONS, check_extension, check_header, merge_headers, parse_time
from triplewire.rdf.parser import decode, decode_message
from triplewire.rdf.splitting import LineSplitter, QuadSplitter, Splitter
from triplewire.rdf.syntaxes import JSON_LD, N_QUADS, N_TRIPLES, SYNTAXES, Syntax

NewId = Callable[[], str]

_NOTICE = "notice"
_ADDED = (_NOTICE, "position", "subscription", "kind")
"""Headers that an edge adds to items; they are dropped when an item is published again."""


@dataclass(frozen=True)
class Envelope:
    """A format of bodies: how items are split, and how one of them is parsed to its events, perhaps none.

    Headers that an item lacks are taken from those of the body. `read` raises InputError.
    """

    name: str
    media_types: tuple[str, ...]
    endings: tuple[str, ...]
    cutter: Callable[[], Splitter]
    read: Callable[[bytes, EventHeaders, NewId], list[Event]]
    heavy: bool = False
    """Whether even little of it takes too long for an event loop."""

    @property
    def media_type(self) -> str:
        return self.media_types[0]


def decode_body(
    body: bytes, media_type: str, headers: EventHeaders, event_id: str | None, new_id: NewId
) -> list[Event]:
    """Return the events of a body; for a media type that is not RDF, one with an opaque payload."""
    essence = media_type.partition(";")[0].strip().lower()
    syntax = next((each for each in SYNTAXES if essence in each.media_types), None)
    if syntax is not None:
        return decode(body, syntax, headers, event_id=event_id, new_id=new_id)
    id = new_id() if event_id is None else event_id
    return [Event(id, OpaquePayload(media_type, body).text(id), replace(headers, syntax=media_type))]


def _read_item(data: bytes, headers: EventHeaders, new_id: NewId) -> list[Event]:
    item = ztreamy.parse_item(data)
    kept = {name: value for name, value in item.headers.extensions.items() if name.lower() not in _ADDED}
    if any(name.lower() == _NOTICE for name in item.headers.extensions):
        return []
    document = merge_headers(replace(item.headers, extensions=kept), headers)
    return decode_body(item.body, item.headers.syntax, document, item.event_id, new_id)


def decode_cloud_event(event: cloudevents.CloudEvent, headers: EventHeaders, new_id: NewId) -> list[Event]:
    """Return the events of a CloudEvent; none for a notice of an edge. Raises InputError."""
    content = cloudevents.interpret_cloud_event(event)
    if content is None:
        return []
    media_type = ztreamy.check_media_type(content.media_type)
    return decode_body(content.body, media_type, merge_headers(content.headers, headers), content.event_id, new_id)


def _read_structured(data: bytes, headers: EventHeaders, new_id: NewId) -> list[Event]:
    return decode_cloud_event(cloudevents.parse_structured(data), headers, new_id)


def _read_line(data: bytes, headers: EventHeaders, new_id: NewId) -> list[Event]:
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"this line is not JSON: {error}") from None
    if not isinstance(document, dict) or not ("body" in document or "type" in document):
        return decode(data, JSON_LD, headers, new_id=new_id)
    return _read_message(document, headers, new_id) if "body" in document else []


def _read_message(document: dict[str, Any], headers: EventHeaders, new_id: NewId) -> list[Event]:
    """Return the event of a JSON line in the format that subscribers get."""
    body, extensions = _text(document, "body"), document.get("headers") or {}
    if body is None or not isinstance(extensions, dict) or len(extensions) > EXTENSIONS:
        raise BadRequest(f"`body` is a string, `headers` an object of at most {EXTENSIONS} strings")
    time, source, application = (_text(document, name) for name in ("time", "source", "application"))
    own = EventHeaders(
        source=None if source is None else check_header("`source`", source),
        application=None if application is None else check_header("`application`", application),
        time=None if time is None else parse_time("`time`", time),
        extensions=dict(check_extension(name, str(value)) for name, value in extensions.items()),
    )
    event_id, media_type = _text(document, "event"), _text(document, "format") or N_QUADS.media_type
    id = None if event_id is None else ztreamy.parse_event_id(event_id)
    return decode_body(body.encode(), ztreamy.check_media_type(media_type), merge_headers(own, headers), id, new_id)


def _text(document: dict[str, Any], name: str) -> str | None:
    found = document.get(name)
    if found is not None and not isinstance(found, str):
        raise BadRequest(f"`{name}` is a string, not {str(found)[:60]}")
    return found


def _read_quads(data: bytes, headers: EventHeaders, new_id: NewId) -> list[Event]:
    return decode(data, N_QUADS, headers, new_id=new_id)


ZTREAMY = Envelope("Ztreamy items", ztreamy.MEDIA_TYPES, (".ztreamy", ".zt"), ztreamy.ZtreamySplitter, _read_item)
NDJSON = Envelope(
    "lines of JSON",
    ("application/x-ndjson", "application/ndjson", "application/jsonl"),
    (".ndjson", ".jsonl"),
    LineSplitter,
    _read_line,
)
CLOUD_EVENT = Envelope(
    "a CloudEvent", (cloudevents.STRUCTURED,), (".cloudevent.json",), cloudevents.WholeBodySplitter, _read_structured
)
CLOUD_EVENTS = Envelope(
    "a batch of CloudEvents",
    (cloudevents.BATCH,),
    (".cloudevents.json",),
    cloudevents.JsonArraySplitter,
    _read_structured,
)
QUADS = Envelope("N-Quads", N_QUADS.media_types, (N_QUADS.ending,), QuadSplitter, _read_quads)
"""Plain N-Quads in a body without an end: an event is complete when another begins."""


def _read_frame(data: bytes, headers: EventHeaders, new_id: NewId) -> list[Event]:
    found = decode_message(data, N_QUADS, headers, new_id=new_id)
    return [replace(each, headers=replace(each.headers, syntax=jelly.MEDIA_TYPE)) for each in found]


JELLY = Envelope("frames of Jelly", (jelly.MEDIA_TYPE,), (".jelly",), jelly.JellySplitter, _read_frame, heavy=True)


def _messages(syntax: Syntax) -> Envelope:
    def read(data: bytes, headers: EventHeaders, new_id: NewId) -> list[Event]:
        return decode_message(data, syntax, headers, new_id=new_id)

    by_lines = syntax in (N_QUADS, N_TRIPLES)
    cutter = messages.LineMessageSplitter if by_lines else messages.StatementMessageSplitter
    return Envelope(f"messages of {syntax.name}", (messages.message_media_type(syntax),), (), cutter, read)


MESSAGES = {syntax: _messages(syntax) for syntax in messages.MESSAGE_SYNTAXES}
"""RDF Messages by their syntax."""

ENVELOPES = (ZTREAMY, NDJSON, CLOUD_EVENT, CLOUD_EVENTS, JELLY, *MESSAGES.values())
STREAMING_ENVELOPES = (ZTREAMY, NDJSON, QUADS, JELLY, *MESSAGES.values())
"""Envelopes whose bodies need not end."""


def find_envelope(content_type: str | None, among: tuple[Envelope, ...] = ENVELOPES) -> Envelope | None:
    """Return the envelope of a Content-Type. Raises BadRequest for an unknown version of RDF Messages."""
    essence, *parameters = ((part.strip().lower()) for part in (content_type or "").split(";"))
    version = next((each[8:].strip('"') for each in parameters if each.startswith("version=")), "")
    if messages.is_message_version(version):
        return next((each for syntax, each in MESSAGES.items() if essence in syntax.media_types), None)
    return next((each for each in among if essence in each.media_types), None)


def find_streaming_envelope(content_type: str | None) -> Envelope:
    """Return the envelope of a body without an end. Raises UnknownMediaType."""
    found = find_envelope(content_type, STREAMING_ENVELOPES)
    if found is None:
        raise UnknownMediaType(content_type or "", tuple(each.media_type for each in STREAMING_ENVELOPES))
    return found
