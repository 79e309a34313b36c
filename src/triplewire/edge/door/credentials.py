"""Credentials: what a request shows of who sends it."""

from __future__ import annotations

import base64

from aiohttp import hdrs, web

from triplewire.contract import Operation
from triplewire.model.errors import Unauthenticated

PARAMETER = "access_token"
"""For browsers, which can give no headers to an EventSource or a WebSocket, and for nothing else: addresses end up in
histories and logs."""
COOKIE = "mercureAuthorization"
"""The same for Mercure, at its address alone. Pages of others could send it along, so it only lets listen."""
_MERCURE = "/.well-known/mercure"
_READING = (hdrs.METH_GET, hdrs.METH_HEAD)


def credential_of(request: web.Request, operation: Operation) -> str | None:
    """The bearer token of a request (RFC 6750), or, to read, its password (RFC 7617): some clients know nothing else.
    None where there is none. Raises Unauthenticated for another kind."""
    header = request.headers.get(hdrs.AUTHORIZATION)
    if header is None:
        return _of_listener(request) if operation.lasts and request.method == hdrs.METH_GET else None
    scheme, _, shown = header.partition(" ")
    kind, found = scheme.lower(), shown.strip()
    if kind == "basic" and request.method in _READING:
        # Browsers send passwords along with what pages of others ask for, so these change nothing.
        found = _password(found)
    elif kind != "bearer":
        found = ""
    if not found:
        raise Unauthenticated("the header Authorization must be Bearer and a token", given=True)
    return found


def _password(shown: str) -> str:
    """Of a name and a password; nothing where there is none."""
    try:
        return base64.b64decode(shown, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _of_listener(request: web.Request) -> str | None:
    if request.path != _MERCURE:
        return request.query.get(PARAMETER)
    return request.query.get(PARAMETER) or request.query.get("authorization") or request.cookies.get(COOKIE)
