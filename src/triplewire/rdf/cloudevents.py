"""CloudEvents 1.0: an event in the three modes of the HTTP binding.

In *binary* mode the attributes are headers `ce-*` and the body is the data; in *structured* mode both are one JSON
object; a *batch* is an array of such objects. The data is RDF, or anything else, which is carried unchanged.
Attributes become headers of events and back without loss:

| attribute | of an event |
|---|---|
| `id` | its id where it is an absolute IRI; else the IRI `urn:cloudevents:{source}:{id}` |
| `source` | the source; `/streams/{stream}` for an event that has none |
| `time` | the time |
| `type`, `subject`, `dataschema` | the headers `ce-type`, `ce-subject`, `ce-dataschema` |
| an extension | the header of the same name |
| `twapplication` | the application |
| `twheaders` | a JSON object of all headers whose names no attribute may have |
| `twsource` | the source unchanged, where it is no URI reference |
| `twstream`, `twposition`, … | written on the way out, ignored on the way in |
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import orjson

from triplewire.model import Event, EventHeaders
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import BadRequest, BodyTooLarge
from triplewire.model.events import BODY, parse_payload
from triplewire.rdf.checks import BODY_BYTES, check_nesting
from triplewire.rdf.headers import EXTENSIONS, check_extension, check_header, parse_time
from triplewire.rdf.serializer import to_nquads
from triplewire.rdf.splitting import RawItem
from triplewire.rdf.syntaxes import N_QUADS
from triplewire.rdf.terms import HEADER_CHARACTERS, check_id

VERSION = "1.0"
DEFAULT_TYPE = "dev.triplewire.event"
"""The type of events without one."""

_NAMED = ("type", "subject", "dataschema")
_OWN = (*_NAMED, "id", "source", "specversion", "datacontenttype", "time", "data", "data_base64")
_OURS = ("twstream", "twposition", "twsubscription", "twquery", "twkind", "twsource", "twapplication", "twheaders")
_NAME = re.compile(r"[a-z0-9]{1,20}")
_GIVEN = re.compile(r"[a-z0-9]+")
_REFERENCE = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&()*+,;=%]+")
_SAFE = "-._~!$&()*+,;=@/"

Attributes = Mapping[str, str]


def write_attributes(event_id: str, headers: EventHeaders, stream: str, **own: str) -> dict[str, str]:
    """Return the attributes of an event of a stream; `own` are attributes of the broker, such as `twposition`."""
    source = headers.source or f"/streams/{stream}"
    reference = source if _REFERENCE.fullmatch(source) else quote(source, safe=_SAFE)
    given, others = _split(headers.extensions)
    attributes = {
        "specversion": VERSION,
        "id": _to_cloud_id(event_id, reference),
        "source": reference,
        "type": given.pop("type", DEFAULT_TYPE),
        **given,
        "time": None if headers.time is None else format_timestamp(headers.time),
        "twsource": None if reference == source else source,
        "twapplication": headers.application,
        "twheaders": orjson.dumps(others).decode() if others else None,
        "twstream": stream,
        **own,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def read_attributes(attributes: Attributes) -> tuple[str, EventHeaders]:
    """Return the event's id and headers, which may be stored and sent on. Raises BadRequest."""
    for name in ("specversion", "id", "source", "type"):
        if not attributes.get(name):
            raise BadRequest(f"a CloudEvent has the attribute `{name}`, and it is not empty")
    if attributes["specversion"] != VERSION:
        raise BadRequest(f"CloudEvents of version {VERSION} are supported, not {attributes['specversion'][:60]!r}")
    reference = check_header("`source`", attributes["source"])
    application, time = attributes.get("twapplication"), attributes.get("time")
    headers = EventHeaders(
        source=_source(attributes, reference),
        application=None if application is None else check_header("`twapplication`", application),
        time=None if time is None else parse_time("`time`", time),
        extensions=_extensions(attributes),
    )
    return _to_event_id(attributes["id"], reference), headers


def _split(extensions: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split headers into attributes, by their names as such, and all others."""
    given = {name: value for name in _NAMED if (value := extensions.get(f"ce-{name}"))}
    others: dict[str, str] = {}
    for name, value in extensions.items():
        if name.removeprefix("ce-") in given and name.startswith("ce-"):
            continue
        plain = _NAME.fullmatch(name) and name not in _OWN and name not in _OURS
        (given if plain else others)[name] = value
    return given, others


def _extensions(attributes: Attributes) -> dict[str, str]:
    found = dict(_stored(attributes))
    if attributes["type"] != DEFAULT_TYPE:
        found["ce-type"] = attributes["type"]
    for name, value in _others(attributes.get("twheaders")).items():
        found[name] = value
    if len(found) > EXTENSIONS:
        raise BadRequest(f"a CloudEvent has {len(found)} extension attributes; the limit is {EXTENSIONS}")
    return dict(check_extension(*each) for each in found.items())


def _stored(attributes: Attributes) -> Iterator[tuple[str, str]]:
    for name, value in attributes.items():
        if name in ("subject", "dataschema"):
            yield f"ce-{name}", value
        elif name not in _OWN and name not in _OURS:
            if not _GIVEN.fullmatch(name):
                raise BadRequest(
                    f"{name[:60]!r} is not an attribute of a CloudEvent; use lower-case letters and digits"
                )
            yield name, value


def _others(text: str | None) -> dict[str, str]:
    try:
        found: Any = {} if text is None else orjson.loads(text)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise BadRequest("`twheaders` is a JSON object of strings")
    return found


def _source(attributes: Attributes, reference: str) -> str | None:
    stream, given = attributes.get("twstream"), attributes.get("twsource")
    if stream is not None and reference == f"/streams/{stream}":
        return None
    if given is not None and quote(given, safe=_SAFE) == reference:
        return check_header("`twsource`", given)
    return reference


def _to_event_id(text: str, source: str) -> str:
    """Return the id of an event as an IRI. Other ids are unique for their source alone, which becomes part of the IRI.

    An IRI that looks like such a result is converted again, so that `_to_cloud_id` is the inverse for all.
    """
    if len(text) <= HEADER_CHARACTERS and _is_iri(text) and _to_cloud_id(text, source) == text:
        return text
    return check_id(f"{_id_prefix(source)}{quote(text, safe=_SAFE)}")


def _to_cloud_id(event_id: str, source: str) -> str:
    """Return the CloudEvents id of an event id: the inverse of `_to_event_id`."""
    start = _id_prefix(source)
    if not event_id.startswith(start):
        return event_id
    text = unquote(event_id.removeprefix(start))
    return text if text and _to_event_id(text, source) == event_id else event_id


def _id_prefix(source: str) -> str:
    return f"urn:cloudevents:{quote(source, safe=_SAFE)}:"


def _is_iri(text: str) -> bool:
    try:
        return bool(check_id(text))
    except BadRequest:
        return False


STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
PREFIX = "ce-"
NOTICES = "dev.triplewire."
"""The prefix of the types of an edge's own notices."""

_JSON = "application/json"
_IS_JSON = re.compile(r"[^/]+/(?:[^;]+\+)?json *(?:;.*)?", re.IGNORECASE)
_PLAIN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


@dataclass(frozen=True)
class CloudEvent:
    """A CloudEvent. `attributes` has all except `datacontenttype`, which is `media_type`, None if missing."""

    attributes: Mapping[str, str]
    media_type: str | None
    data: bytes


@dataclass(frozen=True)
class CloudEventContent:
    """The content of a CloudEvent: an event's id and headers, and a body of a media type."""

    event_id: str
    headers: EventHeaders
    media_type: str
    body: bytes


def make_cloud_event(event: Event, stream: str, **own: str) -> CloudEvent:
    """Convert an event of a stream: its quads as N-Quads, or its opaque payload. `own` are attributes of the broker."""
    attributes = write_attributes(event.id, event.headers, stream, **own)
    payload = parse_payload(event.id, event.text) if BODY in event.text else None
    if payload is None:
        return CloudEvent(attributes, N_QUADS.media_type, to_nquads(event.id, event.text).encode())
    # An event without data is stored as empty JSON.
    media_type = payload.media_type if payload.body or payload.media_type != _JSON else None
    return CloudEvent(attributes, media_type, payload.body)


def write_binary(event: CloudEvent) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of a message in binary mode."""
    headers = {f"{PREFIX}{name}": quote(value, safe=_PLAIN) for name, value in event.attributes.items()}
    return headers if event.media_type is None else {**headers, "Content-Type": event.media_type}, event.data


def write_structured(event: CloudEvent) -> bytes:
    """Return the event as one JSON object, on one line."""
    document = dict[str, Any](event.attributes)
    if event.media_type is not None:
        document["datacontenttype"] = event.media_type
    return orjson.dumps(document | _write_data(event))


def parse_binary(headers: Mapping[str, str], media_type: str | None, data: bytes) -> CloudEvent:
    """Parse a message in binary mode. Raises BadRequest."""
    named = ((name.lower(), value) for name, value in headers.items())
    try:
        found = {
            name.removeprefix(PREFIX): unquote(value, errors="strict")
            for name, value in named
            if name.startswith(PREFIX)
        }
    except UnicodeDecodeError:
        raise BadRequest("the attributes of a CloudEvent are UTF-8, percent-encoded in headers") from None
    return CloudEvent(found, media_type, data)


def parse_structured(data: bytes) -> CloudEvent:
    """Parse a JSON object. Raises BadRequest, or InputError if it is nested too deeply."""
    check_nesting(data)
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"this is not a CloudEvent in JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadRequest("a CloudEvent in JSON is an object; many are an array, as a batch")
    media_type = document.pop("datacontenttype", None)
    if media_type is not None and not isinstance(media_type, str):
        raise BadRequest("`datacontenttype` is a string")
    body = _data(document, media_type)
    return CloudEvent(
        {name: _text(name, value) for name, value in document.items() if value is not None}, media_type, body
    )


def interpret_cloud_event(event: CloudEvent) -> CloudEventContent | None:
    """Return the content of a CloudEvent; None for a notice of an edge. Raises BadRequest."""
    type = event.attributes.get("type", "")
    if type.startswith(NOTICES) and type != DEFAULT_TYPE:
        return None
    event_id, headers = read_attributes(event.attributes)
    return CloudEventContent(event_id, headers, event.media_type or _JSON, event.data)


@dataclass
class WholeBodySplitter:
    """Gathers a body that is one item."""

    _parts: list[bytes] = field(default_factory=list)
    _size: int = 0

    def feed(self, data: bytes) -> Iterator[RawItem]:
        self._parts.append(data)
        self._size += len(data)
        if self._size > BODY_BYTES:
            raise BodyTooLarge("the body", BODY_BYTES)
        yield from ()

    def end(self) -> Iterator[RawItem]:
        body = b"".join(self._parts)
        if body.strip():
            yield RawItem(1, body)


@dataclass
class JsonArraySplitter:
    """Splits a JSON array into its elements when it is complete."""

    _whole: WholeBodySplitter = field(default_factory=WholeBodySplitter)

    def feed(self, data: bytes) -> Iterator[RawItem]:
        return self._whole.feed(data)

    def end(self) -> Iterator[RawItem]:
        for cut in self._whole.end():
            check_nesting(cut.data)
            try:
                found = orjson.loads(cut.data)
            except orjson.JSONDecodeError as error:
                raise BadRequest(f"this is not a batch of CloudEvents in JSON: {error}") from None
            if not isinstance(found, list):
                raise BadRequest(f"a batch of CloudEvents is a JSON array; one alone is {STRUCTURED}")
            for each in found:
                yield RawItem(0, orjson.dumps(each))


def _write_data(event: CloudEvent) -> dict[str, Any]:
    """Return the member that holds the data: as JSON, as text, or as base64."""
    if event.media_type is None and not event.data:
        return {}
    if _IS_JSON.fullmatch(event.media_type or _JSON):
        try:
            orjson.loads(event.data)
        except orjson.JSONDecodeError:
            return {"data_base64": b64encode(event.data).decode()}
        return {"data": orjson.Fragment(event.data)}
    try:
        return {"data": event.data.decode()}
    except UnicodeDecodeError:
        return {"data_base64": b64encode(event.data).decode()}


def _data(document: dict[str, Any], media_type: str | None) -> bytes:
    """Remove the data from a document and return it."""
    missing = object()
    packed, data = document.pop("data_base64", None), document.pop("data", missing)
    if packed is not None:
        if data is not missing or not isinstance(packed, str):
            raise BadRequest("a CloudEvent has `data` or `data_base64`, a string, and not both")
        try:
            return b64decode(packed, validate=True)
        except ValueError:
            raise BadRequest("`data_base64` is not base64") from None
    if data is missing:
        return b""
    if _IS_JSON.fullmatch(media_type or _JSON):
        return orjson.dumps(data)
    if not isinstance(data, str):
        raise BadRequest(f"`data` of the type {media_type} is a string; use `data_base64` for others")
    return data.encode()


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int):
        raise BadRequest(f"the attribute `{name[:60]}` is a string, an integer or a boolean")
    return str(value)
