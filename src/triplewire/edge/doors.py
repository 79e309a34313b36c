"""The door: everything that a request says about events is checked here, once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from aiohttp import web

from triplewire.codec import Syntax, check_id, syntax_of
from triplewire.config import limits
from triplewire.errors import BadRequest, BodyTooLarge
from triplewire.model import Headers, parse_token
from triplewire.registry.streams import stream_name

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORBIDDEN = "\"'\\"


@dataclass(frozen=True)
class Arrival:
    """What a publish request says beside its body."""

    stream: str
    syntax: Syntax
    event_id: str | None
    headers: Headers


def arrival(request: web.Request) -> Arrival:
    """Raises BadRequest, UnknownMediaType or BodyTooLarge; what it returns may be stored and sent on."""
    if (request.content_length or 0) > limits.BODY_BYTES:
        raise BodyTooLarge("the body", limits.BODY_BYTES)
    syntax = syntax_of(request.headers.get("Content-Type"))
    headers = Headers(
        source=_clean(request, "Source-Id"),
        application=_clean(request, "Application-Id"),
        time=_time(request),
        syntax=syntax.media_type,
    )
    return Arrival(stream_name(request.match_info["stream"]), syntax, _event_id(request), headers)


def resumption(request: web.Request) -> int | str | None:
    """The position after which a listener wants to hear: a position, `now`, or None where it does not say."""
    text = request.headers.get("Last-Event-ID") or request.query.get("after")
    if text is None or text == "now":
        return text
    return parse_token(text)


def _clean(request: web.Request, name: str) -> str | None:
    values = request.headers.getall(name, [])
    if not values:
        return None
    if len(values) > 1:
        raise BadRequest(f"the header {name} is given {len(values)} times; give it once")
    text: str = values[0]
    if len(text) > limits.HEADER_CHARACTERS:
        raise BadRequest(f"the header {name} has {len(text)} characters; at most {limits.HEADER_CHARACTERS} are taken")
    if not text or not text.isprintable() or any(character in _FORBIDDEN for character in text):
        raise BadRequest(f"the header {name} must hold printable text without quotes and backslashes, not {text!r}")
    return text


def _event_id(request: web.Request) -> str | None:
    text = _clean(request, "Event-Id")
    return None if text is None else check_id(text)


def _time(request: web.Request) -> int | None:
    text = _clean(request, "Timestamp")
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadRequest(f"the header Timestamp must be ISO 8601, such as 2026-11-15T08:30:00Z, not {text!r}") from None
    since = (at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
