"""Headers of publish requests, validated once: what the functions return may be stored and sent on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import hdrs, web

from triplewire.model import EventHeaders
from triplewire.model.errors import BadRequest, BodyTooLarge, UnknownMediaType
from triplewire.rdf import N_QUADS, Syntax, find_syntax
from triplewire.rdf.checks import BODY_BYTES
from triplewire.rdf.cloudevents import PREFIX
from triplewire.rdf.envelopes import CLOUD_EVENT, CLOUD_EVENTS, ENVELOPES, Envelope, find_envelope
from triplewire.rdf.headers import check_header, parse_time
from triplewire.rdf.ztreamy import parse_event_id
from triplewire.storage.registry.streams import check_stream_name

IDEMPOTENCY_KEY = "Idempotency-Key"


@dataclass(frozen=True)
class PublishRequest:
    """The headers of a publish request."""

    stream: str
    syntax: Syntax
    event_id: str | None
    headers: EventHeaders
    key: str | None
    """The idempotency key, by which a repeated publication is recognized."""
    wrapping: Envelope | None = None
    """The envelope of a body with items; `syntax` then has no meaning."""
    cloud: Mapping[str, str] | None = None
    """The headers of a CloudEvent in binary mode; then the body is its data, of the type that they state."""


@dataclass(frozen=True)
class AddressedRequest:
    """The headers of a request whose events state their streams themselves."""

    syntax: Syntax
    key: str | None


_CLOUDEVENT_HEADER = "ce-specversion"
"""The header by which CloudEvents in binary mode are recognized."""
_EVENT_HEADERS = ("Event-Id", "Source-Id", "Application-Id", "Timestamp")


def parse_publish_request(request: web.Request) -> PublishRequest:
    """Raises BadRequest, UnknownMediaType or BodyTooLarge; what it returns may be stored and sent on."""
    _check_length(request)
    wrapping, cloud = find_envelope(request.headers.get("Content-Type")), None
    if _CLOUDEVENT_HEADER in request.headers and wrapping not in (CLOUD_EVENT, CLOUD_EVENTS):
        wrapping, cloud = None, _cloudevent_headers(request)
    syntax = N_QUADS if wrapping or cloud else _syntax(request)
    event_id = _event_id(request)
    if (wrapping or cloud) and event_id:
        where = "the id of a CloudEvent is ce-id" if wrapping is None else f"in {wrapping.name} each event has its own"
        raise BadRequest(f"the header Event-Id needs a body with one event; {where}")
    stream = check_stream_name(request.match_info["stream"])
    return PublishRequest(
        stream,
        syntax,
        event_id,
        parse_event_headers(request),
        _single_header(request, IDEMPOTENCY_KEY),
        wrapping,
        cloud,
    )


def _cloudevent_headers(request: web.Request) -> dict[str, str]:
    names = [name.lower() for name in request.headers if name.lower().startswith(PREFIX)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadRequest(f"the header {twice} is given twice; give it once")
    return {name: request.headers[name] for name in [*names, hdrs.CONTENT_TYPE] if name in request.headers}


def parse_event_headers(request: web.Request) -> EventHeaders:
    """Headers that apply to all events of a request. Raises BadRequest."""
    return EventHeaders(
        source=_single_header(request, "Source-Id"),
        application=_single_header(request, "Application-Id"),
        time=_time(request),
    )


def _syntax(request: web.Request) -> Syntax:
    try:
        return find_syntax(request.headers.get("Content-Type"))
    except UnknownMediaType as error:
        raise UnknownMediaType(error.given, (*error.known, *(each.media_type for each in ENVELOPES))) from None


def parse_addressed_request(request: web.Request) -> AddressedRequest:
    """Raises BadRequest, also for a header that would apply to all events, UnknownMediaType or BodyTooLarge."""
    _check_length(request)
    syntax = find_syntax(request.headers.get("Content-Type"))
    if not syntax.graphs:
        raise BadRequest(f"{syntax.name} has no graphs to separate events; use TriG, N-Quads or JSON-LD")
    if given := next((name for name in _EVENT_HEADERS if name in request.headers), None):
        raise BadRequest(f"each event states {given} in the body here; leave the header out")
    return AddressedRequest(syntax, _single_header(request, IDEMPOTENCY_KEY))


def _check_length(request: web.Request) -> None:
    if (request.content_length or 0) > BODY_BYTES:
        raise BodyTooLarge("the body", BODY_BYTES)


def _single_header(request: web.Request, name: str) -> str | None:
    values = request.headers.getall(name, [])
    if len(values) > 1:
        raise BadRequest(f"the header {name} is given {len(values)} times; give it once")
    return check_header(f"the header {name}", values[0]) if values else None


def _event_id(request: web.Request) -> str | None:
    text = _single_header(request, "Event-Id")
    return None if text is None else parse_event_id(text)


def _time(request: web.Request) -> int | None:
    text = _single_header(request, "Timestamp")
    return None if text is None else parse_time("the header Timestamp", text)
