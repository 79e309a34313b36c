"""Cross-origin requests: the origins whose pages may use an edge that they were not loaded from.

A browser asks before it lets a page read an answer of another origin (CORS). It does not ask before it opens a
WebSocket, so the edge must refuse that itself: otherwise any page could listen to an edge that only the browser of its
visitor can reach.
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
"""Seconds for which a browser caches the answer."""


@dataclass(frozen=True)
class Origins:
    """Allowed origins, as browsers write them (`https://example.org:8443`), or `*` for all."""

    allowed: Collection[str] = ()

    def allows(self, origin: str) -> bool:
        return ANY_ORIGIN in self.allowed or origin in self.allowed

    def check(self, request: web.Request) -> None:
        """Raises HTTPForbidden for a WebSocket of a page of another origin. Programs send no origin."""
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None or urlsplit(origin).netloc == request.host or self.allows(origin):
            return
        raise web.HTTPForbidden(
            text=f"pages of {origin} may not use this edge; the setting `origins` lists those that may"
        )

    async def add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Let a browser show the response to the page; called before the head of any response is sent."""
        response.headers.update(self.headers(request))

    def headers(self, request: web.Request) -> dict[str, str]:
        """Return the CORS headers of a response; none where no origins are allowed."""
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
        """Return a middleware that answers preflight requests, and refuses WebSockets of other origins, which have
        none."""

        @web.middleware
        async def preflight(request: web.Request, handler: Handler) -> web.StreamResponse:
            if wants_websocket(request):
                self.check(request)
            asked = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_METHOD)
            origin = request.headers.get(hdrs.ORIGIN)
            if request.method != hdrs.METH_OPTIONS or asked is None or origin is None or not self.allows(origin):
                return await handler(request)
            headers = {
                hdrs.ACCESS_CONTROL_ALLOW_METHODS: _METHODS,
                hdrs.ACCESS_CONTROL_ALLOW_HEADERS: request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, ""),
                hdrs.ACCESS_CONTROL_MAX_AGE: _PREFLIGHT_SECONDS,
            }
            return web.Response(status=204, headers=headers)

        return preflight
