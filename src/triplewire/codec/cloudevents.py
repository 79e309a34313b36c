"""CloudEvents 1.0: an event in the three modes of the HTTP binding.

In *binary* mode the attributes are headers `ce-*` and the body is the data; in *structured* mode both are one JSON
object; a *batch* is an array of such objects. The data is RDF, or anything else, which is carried as it is.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import orjson

from triplewire.codec.attributes import TYPE, attributes_of, headers_of
from triplewire.codec.cuts import Cut
from triplewire.codec.depths import check_nesting
from triplewire.codec.syntaxes import N_QUADS
from triplewire.codec.writers import nquads
from triplewire.config import limits
from triplewire.model import Event, EventHeaders
from triplewire.model.errors import BadRequest, BodyTooLarge
from triplewire.model.events import BODY, parse_payload

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
PREFIX = "ce-"
NOTICES = "dev.triplewire."
"""Begins the types of what an edge says of itself."""

_JSON = "application/json"
_IS_JSON = re.compile(r"[^/]+/(?:[^;]+\+)?json *(?:;.*)?", re.IGNORECASE)
_PLAIN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


@dataclass(frozen=True)
class CloudEvent:
    """Attributes but for that of the data's type, which stands for itself; None where it is not said."""

    attributes: Mapping[str, str]
    media_type: str | None
    data: bytes


@dataclass(frozen=True)
class Meant:
    """What a CloudEvent means: an event's id and headers, and a body of a media type."""

    event_id: str
    headers: EventHeaders
    media_type: str
    body: bytes


def cloud_event(event: Event, stream: str, **told: str) -> CloudEvent:
    """An event of a stream: its quads as N-Quads, or what it carries as it came. `told` are attributes of ours."""
    attributes = attributes_of(event.id, event.headers, stream, **told)
    cargo = parse_payload(event.id, event.text) if BODY in event.text else None
    if cargo is None:
        return CloudEvent(attributes, N_QUADS.media_type, nquads(event.id, event.text).encode())
    # Nothing at all is what an event without data is stored as.
    media_type = cargo.media_type if cargo.body or cargo.media_type != _JSON else None
    return CloudEvent(attributes, media_type, cargo.body)


def binary(event: CloudEvent) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a message in binary mode."""
    headers = {f"{PREFIX}{name}": quote(value, safe=_PLAIN) for name, value in event.attributes.items()}
    return headers if event.media_type is None else {**headers, "Content-Type": event.media_type}, event.data


def structured(event: CloudEvent) -> bytes:
    """The event as one JSON object, on one line."""
    said = dict[str, Any](event.attributes)
    if event.media_type is not None:
        said["datacontenttype"] = event.media_type
    return orjson.dumps(said | _written(event))


def parse_binary(headers: Mapping[str, str], media_type: str | None, data: bytes) -> CloudEvent:
    """The event of a message in binary mode. Raises BadRequest."""
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
    """The event of a JSON object. Raises BadRequest, or InputError where it is nested too deep."""
    check_nesting(data)
    try:
        said = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"this is no CloudEvent in JSON: {error}") from None
    if not isinstance(said, dict):
        raise BadRequest("a CloudEvent in JSON is an object; many are an array, as a batch")
    media_type = said.pop("datacontenttype", None)
    if media_type is not None and not isinstance(media_type, str):
        raise BadRequest("`datacontenttype` is a text")
    body = _data(said, media_type)
    return CloudEvent({name: _text(name, value) for name, value in said.items() if value is not None}, media_type, body)


def meant(event: CloudEvent) -> Meant | None:
    """What it means; None for what an edge says of itself. Raises BadRequest."""
    type = event.attributes.get("type", "")
    if type.startswith(NOTICES) and type != TYPE:
        return None
    event_id, headers = headers_of(event.attributes)
    return Meant(event_id, headers, event.media_type or _JSON, event.data)


@dataclass
class WholeCutter:
    """A body that is one item."""

    _parts: list[bytes] = field(default_factory=list)
    _size: int = 0

    def feed(self, data: bytes) -> Iterator[Cut]:
        self._parts.append(data)
        self._size += len(data)
        if self._size > limits.BODY_BYTES:
            raise BodyTooLarge("the body", limits.BODY_BYTES)
        yield from ()

    def end(self) -> Iterator[Cut]:
        body = b"".join(self._parts)
        if body.strip():
            yield Cut(1, body)


@dataclass
class BatchCutter:
    """A JSON array, of which each element is an item. They are told apart when it has ended."""

    _whole: WholeCutter = field(default_factory=WholeCutter)

    def feed(self, data: bytes) -> Iterator[Cut]:
        return self._whole.feed(data)

    def end(self) -> Iterator[Cut]:
        for cut in self._whole.end():
            check_nesting(cut.data)
            try:
                found = orjson.loads(cut.data)
            except orjson.JSONDecodeError as error:
                raise BadRequest(f"this is no batch of CloudEvents in JSON: {error}") from None
            if not isinstance(found, list):
                raise BadRequest(f"a batch of CloudEvents is a JSON array; one alone is {STRUCTURED}")
            for each in found:
                yield Cut(0, orjson.dumps(each))


def _written(event: CloudEvent) -> dict[str, Any]:
    """The member that holds the data: as JSON, as text, or as base64."""
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


def _data(said: dict[str, Any], media_type: str | None) -> bytes:
    """Takes the data out of what is said."""
    missing = object()
    packed, data = said.pop("data_base64", None), said.pop("data", missing)
    if packed is not None:
        if data is not missing or not isinstance(packed, str):
            raise BadRequest("a CloudEvent has `data` or `data_base64`, a text, and not both")
        try:
            return b64decode(packed, validate=True)
        except ValueError:
            raise BadRequest("`data_base64` is not base64") from None
    if data is missing:
        return b""
    if _IS_JSON.fullmatch(media_type or _JSON):
        return orjson.dumps(data)
    if not isinstance(data, str):
        raise BadRequest(f"`data` of the type {media_type} is a text, or else `data_base64`")
    return data.encode()


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int):
        raise BadRequest(f"the attribute `{name[:60]}` is a text, a whole number or a truth value")
    return str(value)
