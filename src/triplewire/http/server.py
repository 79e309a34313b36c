"""The HTTP server: an application on listening sockets until it is told to stop, then drained so that no client loses
an answer.

Bytes that are no request are answered with a problem document, never echoed or logged, since they may hold a token.
Clients that are too slow with a head, a body or an answer are given up. While draining, nothing new is accepted, each
answer closes its connection, and connections that are open are served until they close or the deadline passes.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from socket import socket
from typing import Any, Final

import orjson
from aiohttp import hdrs, web
from aiohttp.http import HttpVersion10, HttpVersion11
from aiohttp.http_exceptions import LineTooLong
from aiohttp.typedefs import Handler, Middleware

from triplewire.http.listeners import BACKLOG, Certificates, close_sockets, has_queued, open_listeners
from triplewire.http.problems import MEDIA_TYPE, problem_document, problem_response
from triplewire.http.rate_limits import UNBOUNDED_BODY, ConnectionProgress, SlowClientTimeout, SlowClientTimer
from triplewire.model.clock import Clock, SystemClock

HEADERS: Final = 128
"""Headers of one request; with their limit of length at worst a megabyte."""

PATIENCE_LOOK_SECONDS: Final = 5.0
"""How often connections are looked at for these: some 5 ms for 15,000."""

KEEP_ALIVE_SECONDS: Final = 75.0
"""For how long a connection stays open on which nothing is asked: longer than the minute of most proxies, which so are
the ones to close it."""

FAREWELL_SECONDS: Final = 5.0
"""How long a connection that is being closed may take to read what it was sent last."""

LEAVE_SECONDS: Final = 1.0
"""How long an edge that is leaving, and accepts nothing more, answers requests that still come by connections that are
open. Then it closes those on which nothing is going on."""

CERTIFICATE_LOOK_SECONDS: Final = 1.0
"""Between two looks at whether the files of a certificate were replaced: two calls of the system."""


# Protocols: what is no request that a handler could have is told as a problem, too.
#
# The web framework answers such bytes with a text that repeats them, and writes them to the log: they may hold a
# token.

logger = logging.getLogger(__name__)

LINE_BYTES = 8190
"""Of the first line of a request, and of a header: the web framework's own limit."""


class EdgeProtocol(web.RequestHandler):
    """One connection."""

    __slots__ = ("_awaits_head", "_patience")

    def __init__(self, server: web.Server, now: float, **options: Any) -> None:  # noqa: ANN401
        super().__init__(server, **options)
        self._awaits_head = True
        self._patience = SlowClientTimer(now)

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
        if lapse is SlowClientTimeout.BODY:
            self._refuse_body(lapse)
        elif lapse is SlowClientTimeout.HEAD:
            self.transport.write(_render_timeout(lapse))
            self.force_close()
        else:
            self.transport.abort()

    def _sight(self) -> ConnectionProgress:
        """What it shows of its client. Time in which we read nothing is not the client's."""
        assert self.transport is not None
        request, body = self._current_request, None
        if request is not None and not (
            request.content.is_eof() or self._reading_paused or request.get(UNBOUNDED_BODY)
        ):
            body = request.content.total_bytes
        written = 0 if request is None else request.writer.output_size
        head = self._awaits_head and self._waiter is not None
        return ConnectionProgress(self._request_count, head, body, written, self.transport.get_write_buffer_size())

    def _refuse_body(self, lapse: SlowClientTimeout) -> None:
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
            response = problem_response(
                status, "Internal", "Something went wrong here", "the request was not carried out"
            )
        else:
            logger.debug("no HTTP: %s", type(exc).__name__)
            response = _refuse_request(status, exc)
        response.force_close()
        return response


def _refuse_request(status: int, error: BaseException | None) -> web.Response:
    title = "The request is no HTTP that is taken here"
    if isinstance(error, LineTooLong):
        detail = f"the first line, or a header, has more than {LINE_BYTES} bytes; long queries go into the body"
        return problem_response(status, "BadHttp", title, detail, limit=LINE_BYTES)
    return problem_response(
        status, "BadHttp", title, "its first line, its headers or its framing are not as RFC 9112 has them"
    )


def _render_timeout(lapse: SlowClientTimeout) -> bytes:
    """A whole answer, where there is no request to answer."""
    body = orjson.dumps(problem_document(408, "RequestTimeout", "Request Timeout", lapse.value))
    head = "HTTP/1.1 408 Request Timeout", f"Content-Type: {MEDIA_TYPE}", f"Content-Length: {len(body)}"
    return "\r\n".join((*head, "Connection: close", "", "")).encode() + body


@web.middleware
async def check_framing(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuses framing that the web framework lets pass, and of which a proxy before us may think otherwise: codings of
    the transfer beside chunks, chunks of HTTP/1.0, requests without a head."""
    codings = [each.strip().lower() for each in request.headers.getall(hdrs.TRANSFER_ENCODING, ())]
    if request.version < (HttpVersion11 if codings else HttpVersion10) or codings not in ([], ["chunked"]):
        response = _refuse_request(400, None)
        response.force_close()
        return response
    return await handler(request)


class EdgeServer(web.Server):
    """Makes them."""

    def __init__(self, clock: Clock, handler: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(handler, **options)
        self.clock = clock

    def __call__(self) -> web.RequestHandler:
        return EdgeProtocol(self, self.clock.ticks(), loop=self._loop, **self._kwargs)

    def look(self) -> None:
        """Look at every connection once."""
        now = self.clock.ticks()
        for each in self.connections:
            if isinstance(each, EdgeProtocol):
                each.look(now)

    async def keep_looking(self) -> None:
        while True:
            await asyncio.sleep(PATIENCE_LOOK_SECONDS)
            self.look()


class EdgeRunner(web.AppRunner):
    """An application, as the framework runs it, behind our own protocol, and with our patience."""

    def __init__(self, app: web.Application, clock: Clock, **options: Any) -> None:  # noqa: ANN401
        super().__init__(app, **options)
        self._clock = clock
        self._looking: asyncio.Task[None] | None = None
        self.front: EdgeServer | None = None

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        options: dict[str, Any] = {**made._kwargs, "handler_cancellation": made.handler_cancellation}
        options |= {"request_factory": made.request_factory, "loop": made._loop}
        self.front = EdgeServer(self._clock, made.request_handler, **options)
        self._looking = asyncio.create_task(self.front.keep_looking())
        return self.front

    async def cleanup(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        await super().cleanup()


# Drains: how an edge leaves so that nobody loses anything.

_LOOK_SECONDS = 0.02


class Drain:
    """Whether the edge is leaving. Each answer then is the last of its connection, so that the client opens another,
    to another process."""

    def __init__(self) -> None:
        self.begun = False

    def middleware(self) -> Middleware:
        @web.middleware
        async def leave(request: web.Request, handler: Handler) -> web.StreamResponse:
            response = await handler(request)
            if self.begun and not response.prepared:
                response.force_close()
            return response

        return leave


DRAIN = web.AppKey("drain", Drain)


async def wait_until_accepted(sockets: Sequence[socket]) -> None:
    """Until no connection waits to be accepted: those that do are reset when the last process closes the socket."""
    while has_queued(sockets):
        await asyncio.sleep(0)


async def wait_until_closed(runner: web.BaseRunner, seconds: float = LEAVE_SECONDS) -> None:
    """Until every connection was closed, or for so long. Whoever sends a request meanwhile, on a connection that was
    accepted or kept open, is answered."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while runner.server is not None and runner.server.connections and loop.time() < end:
        await asyncio.sleep(_LOOK_SECONDS)


def make_runner(app: web.Application, clock: Clock | None = None) -> EdgeRunner:
    """No access log; what a client that left was waiting for is given up, so that a listener that left is gone. Bodies
    are inflated by those who read them, within their limits."""
    return EdgeRunner(
        app,
        SystemClock() if clock is None else clock,
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=2 * FAREWELL_SECONDS,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        max_headers=HEADERS,
        auto_decompress=False,
    )


async def serve(
    app: web.Application, host: str, port: int, *, stop: asyncio.Event, ready: Callable[[int], None] = lambda port: None
) -> None:
    """Serve until `stop` is set, then finish what was begun and close. `ready` is told the port once it is open."""
    await serve_on(app, open_listeners(host, port), stop=stop, ready=ready)


async def serve_on(
    app: web.Application,
    sockets: Sequence[socket],
    *,
    stop: asyncio.Event,
    ready: Callable[[int], None] = lambda port: None,
    leaving: Callable[[], None] = lambda: None,
    certificates: Certificates | None = None,
) -> None:
    """The same on sockets that are listened on already, which are closed at the end. Other processes may have them,
    too. `leaving` is called once it was told to stop. With certificates it is served over TLS alone."""
    runner = make_runner(app)
    await runner.setup()
    context = None if certificates is None else certificates.context
    looking = None if certificates is None else asyncio.create_task(certificates.keep(CERTIFICATE_LOOK_SECONDS))
    try:
        sites = [web.SockSite(runner, each, backlog=BACKLOG, ssl_context=context) for each in sockets]
        for site in sites:
            await site.start()
        ready(sockets[0].getsockname()[1])
        await stop.wait()
        leaving()
        await _drain_connections(runner, sites, sockets)
    finally:
        if looking is not None:
            looking.cancel()
        await runner.cleanup()
        close_sockets(sockets)


async def _drain_connections(runner: web.AppRunner, sites: Sequence[web.SockSite], sockets: Sequence[socket]) -> None:
    """Accept nothing more, send listeners away, and answer those who are still here until they have gone."""
    await wait_until_accepted(sockets)
    for site in sites:
        await site.stop()
    runner.app[DRAIN].begun = True
    await runner.app.shutdown()
    await wait_until_closed(runner)


def stop_on_signals() -> asyncio.Event:
    """Set by SIGTERM or SIGINT from now on."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
