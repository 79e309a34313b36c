"""`/openapi.json`, `/asyncapi.json` and `/docs`: what is served, told from the routes themselves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version

import orjson
from aiohttp import hdrs, web

from triplewire.contract import serves
from triplewire.contract.asyncapi import asyncapi
from triplewire.contract.catalogue import describing
from triplewire.contract.openapi import openapi
from triplewire.contract.routes import Route, described
from triplewire.contract.sheets import sheet

_JSON = "application/json"
_HTML = "text/html"
_NOTHING_ELSE = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""A page of ours loads nothing, whatever gets into it."""


class Contracts:
    """Tells of routes, its own among them. Documents are written when somebody asks for the first time."""

    def __init__(self, served: Sequence[web.RouteDef]) -> None:
        self._served = served
        self._version = version("triplewire")

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/openapi.json", self.openapi),
            web.get("/asyncapi.json", self.asyncapi),
            web.get("/docs", self.docs),
        ]

    @serves(describing.OPENAPI)
    async def openapi(self, request: web.Request) -> web.Response:
        return _told(request, self._openapi, _JSON)

    @serves(describing.ASYNCAPI)
    async def asyncapi(self, request: web.Request) -> web.Response:
        """It names the host by which it was asked for: its servers cannot be told relatively."""
        document = asyncapi(self._routes, self._version, request.host, secure=request.secure)
        return _told(request, orjson.dumps(document), _JSON)

    @serves(describing.DOCS)
    async def docs(self, request: web.Request) -> web.Response:
        response = _told(request, self._sheet, _HTML)
        response.headers["Content-Security-Policy"] = _NOTHING_ELSE
        return response

    @cached_property
    def _routes(self) -> list[Route]:
        return list(described([*self._served, *self.routes()]))

    @cached_property
    def _openapi(self) -> bytes:
        return orjson.dumps(openapi(self._routes, self._version))

    @cached_property
    def _sheet(self) -> bytes:
        return sheet(orjson.loads(self._openapi)).encode()


def _told(request: web.Request, body: bytes, media_type: str) -> web.Response:
    """The document, unless the client has it already."""
    tag = sha256(body).hexdigest()[:32]
    headers = {hdrs.ETAG: f'"{tag}"', hdrs.CACHE_CONTROL: "no-cache"}
    if any(each.value in (tag, "*") for each in request.if_none_match or ()):
        return web.Response(status=304, headers=headers)
    charset = "utf-8" if media_type.startswith("text/") else None
    return web.Response(body=body, content_type=media_type, charset=charset, headers=headers)
