"""Cross-origin requests: the origins whose pages may use an edge that they were not loaded from.

A browser asks before it lets a page read an answer of another origin (CORS). It does not ask before it opens a
WebSocket, so the edge must refuse that by itself: otherwise any page could listen to an edge that only the browser of
its visitor can reach.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from triplewire.http.delivery.connections import wants_websocket

ANY_ORIGIN = "*"
_METHODS = "GET, HEAD, POST, PUT, DELETE"
_EXPOSED = "Link, Location, Position, Retry-After"
_PREFLIGHT_SECONDS = "3600"
"""Seconds for which a browser need not ask again."""


@dataclass(frozen=True)
class Origins:
    """Those that are allowed, as browsers write them (`https://example.org:8443`), or `*` for all."""

    allowed: Collection[str] = ()

    def allows(self, origin: str) -> bool:
        return ANY_ORIGIN in self.allowed or origin in self.allowed

    def check(self, request: web.Request) -> None:
        """Raises HTTPForbidden for what a page of another origin may not open. Programs send no origin."""
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None or urlsplit(origin).netloc == request.host or self.allows(origin):
            return
        raise web.HTTPForbidden(text=f"pages of {origin} may not talk to this edge; the setting `origins` says who may")

    async def mark(self, request: web.Request, response: web.StreamResponse) -> None:
        """Tell a browser that the page may read the answer; called before the head of any answer is sent."""
        response.headers.update(self.headers(request))

    def headers(self, request: web.Request) -> dict[str, str]:
        """What an answer says of origins; nothing where none are allowed."""
        origin = request.headers.get(hdrs.ORIGIN)
        if not self.allowed:
            return {}
        if origin is None or not self.allows(origin):
            return {hdrs.VARY: hdrs.ORIGIN}
        return {
            hdrs.VARY: hdrs.ORIGIN,
            hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: origin,
            hdrs.ACCESS_CONTROL_EXPOSE_HEADERS: _EXPOSED,
        }

    def middleware(self) -> Middleware:
        """Answers the question that a browser asks before a request that is more than a form could send, and refuses
        WebSockets, about which it does not ask."""

        @web.middleware
        async def preflight(request: web.Request, handler: Handler) -> web.StreamResponse:
            if wants_websocket(request):
                self.check(request)
            asked = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_METHOD)
            origin = request.headers.get(hdrs.ORIGIN)
            if request.method != hdrs.METH_OPTIONS or asked is None or origin is None or not self.allows(origin):
                return await handler(request)
            told = {
                hdrs.ACCESS_CONTROL_ALLOW_METHODS: _METHODS,
                hdrs.ACCESS_CONTROL_ALLOW_HEADERS: request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, ""),
                hdrs.ACCESS_CONTROL_MAX_AGE: _PREFLIGHT_SECONDS,
            }
            return web.Response(status=204, headers=told)

        return preflight
