"""Replies: answers in JSON, and how much of a list one of them has."""

from __future__ import annotations

import orjson
from aiohttp import web

from triplewire.config import limits
from triplewire.model.errors import BadRequest

JSON = "application/json"


def reply(value: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(value), content_type=JSON, headers=headers)


def page_size(request: web.Request) -> int:
    """As the parameter `limit` says. Raises BadRequest."""
    text = request.query.get("limit", str(limits.PAGE))
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= limits.PAGE:
        raise BadRequest(f"limit must be a number from 1 to {limits.PAGE}, not {text!r}")
    return int(text)
