"""Wrappings: ways to write many items in one body, each of which is taken or refused by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import orjson

from triplewire.codec import cloudevents, jelly, messages, ztreamy
from triplewire.codec.cuts import Cutter, LineCutter, QuadCutter
from triplewire.codec.extensions import extension
from triplewire.codec.headers import above, clean, instant
from triplewire.codec.readers import decode, decode_message
from triplewire.codec.syntaxes import JSON_LD, N_QUADS, N_TRIPLES, SYNTAXES, Syntax
from triplewire.config import limits
from triplewire.model import Event, EventHeaders
from triplewire.model.errors import BadRequest, UnknownMediaType
from triplewire.model.events import OpaquePayload

NewId = Callable[[], str]

_NOTICE = "notice"
_ADDED = (_NOTICE, "position", "subscription", "kind")
"""Headers that an edge adds to items that it sends; where they are published again these are no part of them."""


@dataclass(frozen=True)
class Wrapping:
    """How items are told apart, and how one of them is read: to its events, of which there may be none. What it does
    not say of itself stands in the headers that are given. Reading raises InputError."""

    name: str
    media_types: tuple[str, ...]
    endings: tuple[str, ...]
    cutter: Callable[[], Cutter]
    read: Callable[[bytes, EventHeaders, NewId], list[Event]]
    heavy: bool = False
    """It takes so long that even little of it is not read on an event loop."""

    @property
    def media_type(self) -> str:
        return self.media_types[0]


def events_of(body: bytes, media_type: str, headers: EventHeaders, event_id: str | None, new_id: NewId) -> list[Event]:
    """What a body of a media type is: events, or the one that carries it where it is no RDF."""
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
    said = above(replace(item.headers, extensions=kept), headers)
    return events_of(item.body, item.headers.syntax, said, item.event_id, new_id)


def read_cloud(event: cloudevents.CloudEvent, headers: EventHeaders, new_id: NewId) -> list[Event]:
    """The events of a CloudEvent, of which there is one; none for what an edge says of itself. Raises InputError."""
    found = cloudevents.meant(event)
    if found is None:
        return []
    media_type = ztreamy.media_type_of(found.media_type)
    return events_of(found.body, media_type, above(found.headers, headers), found.event_id, new_id)


def _read_structured(data: bytes, headers: EventHeaders, new_id: NewId) -> list[Event]:
    return read_cloud(cloudevents.parse_structured(data), headers, new_id)


def _read_line(data: bytes, headers: EventHeaders, new_id: NewId) -> list[Event]:
    try:
        said = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"this is no line of JSON: {error}") from None
    if not isinstance(said, dict) or not ("body" in said or "type" in said):
        return decode(data, JSON_LD, headers, new_id=new_id)
    return _read_message(said, headers, new_id) if "body" in said else []


def _read_message(said: dict[str, Any], headers: EventHeaders, new_id: NewId) -> list[Event]:
    """An event as lines of JSON tell it to those who listen."""
    body, extensions = _text(said, "body"), said.get("headers") or {}
    if body is None or not isinstance(extensions, dict) or len(extensions) > limits.EXTENSIONS:
        raise BadRequest(f"`body` is a text, `headers` an object of at most {limits.EXTENSIONS} texts")
    time, source, application = (_text(said, name) for name in ("time", "source", "application"))
    own = EventHeaders(
        source=None if source is None else clean("`source`", source),
        application=None if application is None else clean("`application`", application),
        time=None if time is None else instant("`time`", time),
        extensions=dict(extension(name, str(value)) for name, value in extensions.items()),
    )
    event_id, media_type = _text(said, "event"), _text(said, "format") or N_QUADS.media_type
    id = None if event_id is None else ztreamy.id_of(event_id)
    return events_of(body.encode(), ztreamy.media_type_of(media_type), above(own, headers), id, new_id)


def _text(said: dict[str, Any], name: str) -> str | None:
    found = said.get(name)
    if found is not None and not isinstance(found, str):
        raise BadRequest(f"`{name}` is a text, not {str(found)[:60]}")
    return found


def _read_quads(data: bytes, headers: EventHeaders, new_id: NewId) -> list[Event]:
    return decode(data, N_QUADS, headers, new_id=new_id)


ZTREAMY = Wrapping("Ztreamy items", ztreamy.MEDIA_TYPES, (".ztreamy", ".zt"), ztreamy.ItemCutter, _read_item)
NDJSON = Wrapping(
    "lines of JSON",
    ("application/x-ndjson", "application/ndjson", "application/jsonl"),
    (".ndjson", ".jsonl"),
    LineCutter,
    _read_line,
)
CLOUD_EVENT = Wrapping(
    "a CloudEvent", (cloudevents.STRUCTURED,), (".cloudevent.json",), cloudevents.WholeCutter, _read_structured
)
CLOUD_EVENTS = Wrapping(
    "a batch of CloudEvents",
    (cloudevents.BATCH,),
    (".cloudevents.json",),
    cloudevents.BatchCutter,
    _read_structured,
)
QUADS = Wrapping("N-Quads", N_QUADS.media_types, (N_QUADS.ending,), QuadCutter, _read_quads)
"""Quads as they come, where a body has no end: an event is whole when another begins."""


def _read_frame(data: bytes, headers: EventHeaders, new_id: NewId) -> list[Event]:
    found = decode_message(data, N_QUADS, headers, new_id=new_id)
    return [replace(each, headers=replace(each.headers, syntax=jelly.MEDIA_TYPE)) for each in found]


JELLY = Wrapping("frames of Jelly", (jelly.MEDIA_TYPE,), (".jelly",), jelly.JellyCutter, _read_frame, heavy=True)


def _messages(syntax: Syntax) -> Wrapping:
    def read(data: bytes, headers: EventHeaders, new_id: NewId) -> list[Event]:
        return decode_message(data, syntax, headers, new_id=new_id)

    by_lines = syntax in (N_QUADS, N_TRIPLES)
    cutter = messages.LineMessageCutter if by_lines else messages.StatementMessageCutter
    return Wrapping(f"messages of {syntax.name}", (messages.message_media_type(syntax),), (), cutter, read)


MESSAGES = {syntax: _messages(syntax) for syntax in messages.SYNTAXES}
"""RDF Messages, by the syntax in which they are written."""

WRAPPINGS = (ZTREAMY, NDJSON, CLOUD_EVENT, CLOUD_EVENTS, JELLY, *MESSAGES.values())
LASTING = (ZTREAMY, NDJSON, QUADS, JELLY, *MESSAGES.values())
"""Those in which a body need not end."""


def wrapping_of(content_type: str | None, among: tuple[Wrapping, ...] = WRAPPINGS) -> Wrapping | None:
    """The one that a Content-Type names. Raises BadRequest for messages of a version that is not known."""
    essence, *parameters = ((part.strip().lower()) for part in (content_type or "").split(";"))
    version = next((each[8:].strip('"') for each in parameters if each.startswith("version=")), "")
    if messages.is_label(version):
        return next((each for syntax, each in MESSAGES.items() if essence in syntax.media_types), None)
    return next((each for each in among if essence in each.media_types), None)


def lasting(content_type: str | None) -> Wrapping:
    """One for a body without an end. Raises UnknownMediaType."""
    found = wrapping_of(content_type, LASTING)
    if found is None:
        raise UnknownMediaType(content_type or "", tuple(each.media_type for each in LASTING))
    return found
