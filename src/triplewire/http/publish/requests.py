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
    """What a publish request says beside its body."""

    stream: str
    syntax: Syntax
    event_id: str | None
    headers: EventHeaders
    key: str | None
    """By which the same publication is known when it comes again."""
    wrapping: Envelope | None = None
    """How its items are told apart, where the body holds items and no document; `syntax` then says nothing."""
    cloud: Mapping[str, str] | None = None
    """The headers of a CloudEvent in binary mode; then the body is its data, of whatever type they say."""


@dataclass(frozen=True)
class AddressedRequest:
    """What a request says beside a body whose events say the rest themselves."""

    syntax: Syntax
    key: str | None


_CLOUDEVENT_HEADER = "ce-specversion"
"""The header that CloudEvents in binary mode have."""
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
        who = "a CloudEvent says it itself, by ce-id" if wrapping is None else f"{wrapping.name} say it of each"
        raise BadRequest(f"the header Event-Id is said of one event; {who}")
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
    """What a request says of all its events. Raises BadRequest."""
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
    """Raises BadRequest, also for a header that would speak of all events at once, UnknownMediaType or BodyTooLarge."""
    _check_length(request)
    syntax = find_syntax(request.headers.get("Content-Type"))
    if not syntax.graphs:
        raise BadRequest(f"{syntax.name} has no graphs to tell events apart; use TriG, N-Quads or JSON-LD")
    if given := next((name for name in _EVENT_HEADERS if name in request.headers), None):
        raise BadRequest(f"the header {given} is said of each event in the body here; leave it out")
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
