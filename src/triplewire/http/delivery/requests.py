"""Request parameters of subscribers: where to resume, and numbers within bounds."""

from __future__ import annotations

from aiohttp import web

from triplewire.http.delivery.options import MOVED
from triplewire.http.delivery.replay import ResumeRequest
from triplewire.model.errors import BadRequest


def resume_parameter(request: web.Request) -> str | None:
    """After what a listener wants to hear. The last id of one who comes from another edge counts only if it is that of
    an event: positions are those of the other edge."""
    last, after = request.headers.get("Last-Event-ID"), request.query.get("after")
    if MOVED in request.query and last is not None and ":" not in last:
        last = None
    return last or after


def parse_resumption(request: web.Request) -> ResumeRequest | None:
    """After what a listener wants to hear; None where it does not say. Raises BadRequest."""
    text = resume_parameter(request)
    return None if text is None else ResumeRequest.parsed(text)


def parse_number(request: web.Request, name: str, default: float, most: float, least: float = 0) -> float:
    """A parameter that is a number within bounds. Raises BadRequest."""
    text = request.query.get(name)
    try:
        number = default if text is None else float(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise BadRequest(f"{name} must be a number from {least:g} to {most:g}, not {text!r}")
    return number
