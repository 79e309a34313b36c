"""Bodies: what was sent, within its limit, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from aiohttp import web

from triplewire.control.replies import JSON
from triplewire.model.errors import BadRequest, BodyTooLarge, UnknownMediaType
from triplewire.rdf.checks import check_nesting


async def body_of(request: web.Request, what: str, most: int) -> bytes:
    """Raises BodyTooLarge, for one that says so before it is read."""
    if (request.content_length or 0) > most:
        raise BodyTooLarge(what, most)
    body = await request.read()
    if len(body) > most:
        raise BodyTooLarge(what, most)
    return body


async def json_of(request: web.Request, most: int, known: Sequence[str] = (JSON,)) -> object:
    """Raises BodyTooLarge, BadRequest, or UnknownMediaType with those that are known."""
    if request.content_type != JSON:
        raise UnknownMediaType(request.headers.get("Content-Type", ""), tuple(known))
    body = await body_of(request, "the body", most)
    check_nesting(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
