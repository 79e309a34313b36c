"""Credentials: what a request shows of who sends it."""

from __future__ import annotations

from aiohttp import hdrs, web

from triplewire.contract import Operation
from triplewire.errors import Unauthenticated

PARAMETER = "access_token"
"""For browsers, which can give no headers to an EventSource or a WebSocket, and for nothing else: addresses end up in
histories and logs."""
COOKIE = "mercureAuthorization"
"""The same for Mercure, at its address alone. Pages of others could send it along, so it only lets listen."""
_MERCURE = "/.well-known/mercure"
_SCHEME = "bearer"


def credential_of(request: web.Request, operation: Operation) -> str | None:
    """The bearer token of a request (RFC 6750); None where there is none. Raises Unauthenticated for another kind."""
    header = request.headers.get(hdrs.AUTHORIZATION)
    if header is None:
        return _of_listener(request) if operation.lasts and request.method == hdrs.METH_GET else None
    scheme, _, shown = header.partition(" ")
    if scheme.lower() != _SCHEME or not shown.strip():
        raise Unauthenticated("the header Authorization must be Bearer and a token", given=True)
    return shown.strip()


def _of_listener(request: web.Request) -> str | None:
    if request.path != _MERCURE:
        return request.query.get(PARAMETER)
    return request.query.get(PARAMETER) or request.query.get("authorization") or request.cookies.get(COOKIE)
