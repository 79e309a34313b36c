"""Documents that describe the edge: `GET /`, `/openapi.json`, `/asyncapi.json` and `/docs`, and conditional requests
(ETag, Cache-Control) for every document that may be cached.

The API documents are generated from the routes when the first client asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b, sha256
from importlib.metadata import version

import orjson
from aiohttp import hdrs, web

from triplewire.http.openapi import Operation, resource_operations, routes_of, serves
from triplewire.http.openapi.generator import asyncapi, html_page, openapi
from triplewire.http.openapi.operations import JSON, served_operations
from triplewire.security import EVERYONE, Principal


@dataclass(frozen=True)
class CacheableDocument:
    """A document that may be cached for some seconds; one that is `fixed` never changes."""

    body: bytes
    media_type: str
    seconds: int
    fixed: bool = False

    @property
    def tag(self) -> str:
        return blake2b(self.body, digest_size=16).hexdigest()


def respond_conditionally(
    request: web.Request, document: CacheableDocument, principal: Principal, links: Iterable[str] = ()
) -> web.Response:
    """Return the document, or 304 for a client that has it. Shared caches keep only documents for everyone."""
    shared = "public" if principal == EVERYONE else "private"
    control = f"{shared}, max-age={document.seconds}{', immutable' if document.fixed else ''}"
    headers = {hdrs.ETAG: f'"{document.tag}"', hdrs.CACHE_CONTROL: control, hdrs.VARY: "Accept, Authorization"}
    known = {each.value for each in request.if_none_match or ()}
    if known & {document.tag, "*"}:
        response = web.Response(status=304, headers=headers)
    else:
        response = web.Response(body=document.body, headers={**headers, hdrs.CONTENT_TYPE: document.media_type})
    for link in links:
        response.headers.add(hdrs.LINK, link)
    return response


_HTML = "text/html"
_CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The page loads nothing, whatever gets into it."""


class ApiDocuments:
    """Serves the API documents of routes, its own among them."""

    def __init__(self, served: Sequence[web.RouteDef]) -> None:
        self._served = served
        self._version = version("triplewire")

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.openapi, self.asyncapi, self.docs)

    @serves(resource_operations.OPENAPI)
    async def openapi(self, request: web.Request) -> web.Response:
        return _send_document(request, self._openapi, JSON)

    @serves(resource_operations.ASYNCAPI)
    async def asyncapi(self, request: web.Request) -> web.Response:
        """Answer with the host of the request in it, since AsyncAPI has no relative servers."""
        document = asyncapi(self._operations, self._version, request.host, secure=request.secure)
        return _send_document(request, orjson.dumps(document), JSON)

    @serves(resource_operations.DOCS)
    async def docs(self, request: web.Request) -> web.Response:
        response = _send_document(request, self._sheet, _HTML)
        response.headers["Content-Security-Policy"] = _CONTENT_SECURITY_POLICY
        return response

    @cached_property
    def _operations(self) -> list[Operation]:
        return served_operations([*self._served, *self.routes()])

    @cached_property
    def _openapi(self) -> bytes:
        return orjson.dumps(openapi(self._operations, self._version))

    @cached_property
    def _sheet(self) -> bytes:
        return html_page(orjson.loads(self._openapi)).encode()


def _send_document(request: web.Request, body: bytes, media_type: str) -> web.Response:
    """Return the document, or 304 for a client that has it."""
    tag = sha256(body).hexdigest()[:32]
    headers = {hdrs.ETAG: f'"{tag}"', hdrs.CACHE_CONTROL: "no-cache"}
    if any(each.value in (tag, "*") for each in request.if_none_match or ()):
        return web.Response(status=304, headers=headers)
    charset = "utf-8" if media_type.startswith("text/") else None
    return web.Response(body=body, content_type=media_type, charset=charset, headers=headers)


_INDEX = {
    "name": "Triplewire",
    "publish": "POST /streams/{stream}, POST /events",
    "consume": "GET /streams/{stream}",
    "read": "GET /events",
    "subscribe": "POST /subscriptions",
    "notifications": "GET /subscriptions/{id}/notifications",
    "continuous": "POST /queries",
    "answers": "GET /queries/{id}/answers",
    "templates": "PUT|GET|DELETE /templates/{name}",
    "query": "GET|POST /sparql",
    "erase": "DELETE /events/{id}, DELETE /events?source=|subject=",
    "receipts": "GET /erasures/{id}",
    "ontologies": "PUT|GET|DELETE /ontologies/{name}",
    "health": "GET /health",
    "metrics": "GET /metrics",
    "contract": "GET /openapi.json, GET /asyncapi.json, GET /docs",
}


@serves(resource_operations.INDEX)
async def get_index(request: web.Request) -> web.Response:
    return web.Response(body=orjson.dumps(_INDEX, option=orjson.OPT_INDENT_2), content_type="application/json")
