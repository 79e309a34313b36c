"""Protocols: what is no request that a handler could have is told as a problem, too.

The web framework answers such bytes with a text that repeats them, and writes them to the log: they may hold a token.
"""

from __future__ import annotations

import logging
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from triplewire.edge.problems import problem

logger = logging.getLogger(__name__)

LINE_BYTES = 8190
"""Of the first line of a request, and of a header: the web framework's own limit."""


class Protocol(web.RequestHandler):
    """One connection."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What a client is told; the connection is closed, since nobody knows where the next request begins. Raises
        ConnectionError where an answer has begun."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun already")
        if status >= 500:
            logger.error("a request failed outside of its handler", exc_info=exc)
            response = problem(status, "Internal", "Something went wrong here", "the request was not carried out")
        else:
            logger.debug("no HTTP: %s", type(exc).__name__)
            response = _refused(status, exc)
        response.force_close()
        return response


def _refused(status: int, error: BaseException | None) -> web.Response:
    title = "The request is no HTTP that is taken here"
    if isinstance(error, LineTooLong):
        detail = f"the first line, or a header, has more than {LINE_BYTES} bytes; long queries go into the body"
        return problem(status, "BadHttp", title, detail, limit=LINE_BYTES)
    return problem(status, "BadHttp", title, "its first line, its headers or its framing are not as RFC 9112 has them")


class Front(web.Server):
    """Makes them."""

    def __call__(self) -> web.RequestHandler:
        return Protocol(self, loop=self._loop, **self._kwargs)


class Runner(web.AppRunner):
    """An application, as the framework runs it, behind our own protocol."""

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        options: dict[str, Any] = {**made._kwargs, "handler_cancellation": made.handler_cancellation}
        return Front(made.request_handler, request_factory=made.request_factory, loop=made._loop, **options)
