"""Protocols: what is no request that a handler could have is told as a problem, too.

The web framework answers such bytes with a text that repeats them, and writes them to the log: they may hold a
token.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import orjson
from aiohttp import hdrs, web
from aiohttp.http import HttpVersion10, HttpVersion11
from aiohttp.http_exceptions import LineTooLong
from aiohttp.typedefs import Handler

from triplewire.config import limits
from triplewire.edge.clients.patience import LASTING, Lapse, Patience, Sight
from triplewire.edge.problems import MEDIA_TYPE, problem
from triplewire.model.clock import Clock
from triplewire.problems import document

logger = logging.getLogger(__name__)

LINE_BYTES = 8190
"""Of the first line of a request, and of a header: the web framework's own limit."""


class Protocol(web.RequestHandler):
    """One connection."""

    __slots__ = ("_awaits_head", "_patience")

    def __init__(self, server: web.Server, now: float, **options: Any) -> None:  # noqa: ANN401
        super().__init__(server, **options)
        self._awaits_head = True
        self._patience = Patience(now)

    def data_received(self, data: bytes) -> None:
        count, idle = self._request_count, self._waiter is not None
        super().data_received(data)
        if self._request_count != count:
            self._awaits_head = False
        elif idle:
            self._awaits_head = True

    def look(self, now: float) -> None:
        """Give up what has taken the client too long. It is told so where that is still possible."""
        if self.transport is None or self._upgraded or (lapse := self._patience.lapsed(self._sight(), now)) is None:
            return
        logger.debug("given up: %s", lapse.value)
        if lapse is Lapse.BODY:
            self._refuse_body(lapse)
        elif lapse is Lapse.HEAD:
            self.transport.write(_late(lapse))
            self.force_close()
        else:
            self.transport.abort()

    def _sight(self) -> Sight:
        """What it shows of its client. Time in which we read nothing is not the client's."""
        assert self.transport is not None
        request, body = self._current_request, None
        if request is not None and not (request.content.is_eof() or self._reading_paused or request.get(LASTING)):
            body = request.content.total_bytes
        written = 0 if request is None else request.writer.output_size
        head = self._awaits_head and self._waiter is not None
        return Sight(self._request_count, head, body, written, self.transport.get_write_buffer_size())

    def _refuse_body(self, lapse: Lapse) -> None:
        """Whoever reads it hears of it; nothing more is taken from the connection."""
        request = self._current_request
        assert request is not None
        self.close()
        request.content.set_exception(web.HTTPRequestTimeout(text=lapse.value))
        request.content.feed_eof()

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


def _late(lapse: Lapse) -> bytes:
    """A whole answer, where there is no request to answer."""
    body = orjson.dumps(document(408, "RequestTimeout", "Request Timeout", lapse.value))
    head = "HTTP/1.1 408 Request Timeout", f"Content-Type: {MEDIA_TYPE}", f"Content-Length: {len(body)}"
    return "\r\n".join((*head, "Connection: close", "", "")).encode() + body


@web.middleware
async def framed(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses framing that the web framework lets pass, and of which a proxy before us may think otherwise: codings of
    the transfer beside chunks, chunks of HTTP/1.0, requests without a head."""
    codings = [each.strip().lower() for each in request.headers.getall(hdrs.TRANSFER_ENCODING, ())]
    if request.version < (HttpVersion11 if codings else HttpVersion10) or codings not in ([], ["chunked"]):
        response = _refused(400, None)
        response.force_close()
        return response
    return await handler(request)


class Front(web.Server):
    """Makes them."""

    def __init__(self, clock: Clock, handler: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(handler, **options)
        self.clock = clock

    def __call__(self) -> web.RequestHandler:
        return Protocol(self, self.clock.ticks(), loop=self._loop, **self._kwargs)

    def look(self) -> None:
        """Look at every connection once."""
        now = self.clock.ticks()
        for each in self.connections:
            if isinstance(each, Protocol):
                each.look(now)

    async def keep_looking(self) -> None:
        while True:
            await asyncio.sleep(limits.PATIENCE_LOOK_SECONDS)
            self.look()


class Runner(web.AppRunner):
    """An application, as the framework runs it, behind our own protocol, and with our patience."""

    def __init__(self, app: web.Application, clock: Clock, **options: Any) -> None:  # noqa: ANN401
        super().__init__(app, **options)
        self._clock = clock
        self._looking: asyncio.Task[None] | None = None
        self.front: Front | None = None

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        options: dict[str, Any] = {**made._kwargs, "handler_cancellation": made.handler_cancellation}
        options |= {"request_factory": made.request_factory, "loop": made._loop}
        self.front = Front(self._clock, made.request_handler, **options)
        self._looking = asyncio.create_task(self.front.keep_looking())
        return self.front

    async def cleanup(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        await super().cleanup()
