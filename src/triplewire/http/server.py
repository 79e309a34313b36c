"""The HTTP server: an application on listening sockets until it is stopped, then drained so that no client loses a
response.

Bytes that are no request are answered with a problem document, never echoed or logged, since they may hold a token.
Clients that are too slow with a head, a body or a response are cut off. While draining, no connection is accepted,
each response closes its connection, and open connections are served until they close or the deadline passes.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from functools import partial
from socket import socket
from typing import Any, Final

import orjson
from aiohttp import hdrs, web
from aiohttp.http import HttpVersion10, HttpVersion11
from aiohttp.http_exceptions import LineTooLong
from aiohttp.typedefs import Handler, Middleware

from triplewire.http.listeners import BACKLOG, Certificates, close_sockets, has_queued
from triplewire.http.problems import MEDIA_TYPE, internal_error_response, problem_response
from triplewire.http.rate_limits import UNBOUNDED_BODY, ConnectionProgress, SlowClientTimeout, SlowClientTimer
from triplewire.http.workers import Worker
from triplewire.model.clock import Clock, SystemClock
from triplewire.model.problems import problem_document

HEADERS: Final = 128
"""Headers of one request; with the limit of their length at worst a megabyte."""

SLOW_CLIENT_SECONDS: Final = 5.0
"""Time between two checks of connections for slow clients: some 5 ms for 15,000."""

KEEP_ALIVE_SECONDS: Final = 75.0
"""How long a connection without requests stays open: longer than the minute of most proxies, so that they close it."""

FAREWELL_SECONDS: Final = 5.0
"""How long the client of a connection that is being closed may take to read the rest."""

DRAIN_SECONDS: Final = 1.0
"""How long an edge that drains answers requests on open connections. Then it closes those without a request."""

CERTIFICATE_SECONDS: Final = 1.0
"""Time between two checks whether the files of a certificate were replaced: two system calls."""

_DRAIN_LOOK_SECONDS = 0.02

logger = logging.getLogger(__name__)

LINE_BYTES = 8190
"""Length of the first line of a request, and of a header: the limit of the web framework."""


class EdgeProtocol(web.RequestHandler):
    """One connection. Unlike the web framework it neither echoes nor logs bytes that are no request."""

    __slots__ = ("_awaits_head", "_timer")

    def __init__(self, server: web.Server, now: float, **options: Any) -> None:  # noqa: ANN401
        super().__init__(server, **options)
        self._awaits_head = True
        self._timer = SlowClientTimer(now)

    def data_received(self, data: bytes) -> None:
        count, idle = self._request_count, self._waiter is not None
        super().data_received(data)
        if self._request_count != count:
            self._awaits_head = False
        elif idle:
            self._awaits_head = True

    def check_progress(self, now: float) -> None:
        """End the connection of a client that is too slow, with a problem document where that is still possible."""
        if self.transport is None or self._upgraded:
            return
        timeout = self._timer.check(self._progress(), now)
        if timeout is None:
            return
        logger.debug("slow client: %s", timeout.value)
        if timeout is SlowClientTimeout.BODY:
            self._refuse_body(timeout)
        elif timeout is SlowClientTimeout.HEAD:
            self.transport.write(_render_timeout(timeout))
            self.force_close()
        else:
            self.transport.abort()

    def _progress(self) -> ConnectionProgress:
        """Return the progress of the client. Time in which the edge does not read is not the client's."""
        assert self.transport is not None
        request, body = self._current_request, None
        if request is not None and not (
            request.content.is_eof() or self._reading_paused or request.get(UNBOUNDED_BODY)
        ):
            body = request.content.total_bytes
        written = 0 if request is None else request.writer.output_size
        head = self._awaits_head and self._waiter is not None
        return ConnectionProgress(self._request_count, head, body, written, self.transport.get_write_buffer_size())

    def _refuse_body(self, timeout: SlowClientTimeout) -> None:
        """Raise in the handler that reads the body, and read no more from the connection."""
        request = self._current_request
        assert request is not None
        self.close()
        request.content.set_exception(web.HTTPRequestTimeout(text=timeout.value))
        request.content.feed_eof()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Return the problem document, and close the connection, since it is unknown where the next request begins.
        Raises ConnectionError if a response has begun."""
        if request.writer.output_size > 0:
            raise ConnectionError("a response has begun already")
        if status >= 500:
            logger.error("a request failed outside of its handler", exc_info=exc)
            response = internal_error_response(status)
        else:
            logger.debug("not HTTP: %s", type(exc).__name__)
            response = _refuse_request(status, exc)
        response.force_close()
        return response


def _refuse_request(status: int, error: BaseException | None) -> web.Response:
    title = "Malformed HTTP request"
    if isinstance(error, LineTooLong):
        detail = f"the first line, or a header, has more than {LINE_BYTES} bytes; long queries go into the body"
        return problem_response(status, "BadHttp", title, detail, limit=LINE_BYTES)
    return problem_response(status, "BadHttp", title, "its first line, its headers or its framing violate RFC 9112")


def _render_timeout(timeout: SlowClientTimeout) -> bytes:
    """Render a whole response, for a client that has not sent a whole request."""
    body = orjson.dumps(problem_document(408, "RequestTimeout", "Request Timeout", timeout.value))
    head = "HTTP/1.1 408 Request Timeout", f"Content-Type: {MEDIA_TYPE}", f"Content-Length: {len(body)}"
    return "\r\n".join((*head, "Connection: close", "", "")).encode() + body


@web.middleware
async def check_framing(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse framing that the web framework accepts and a proxy may read otherwise (request smuggling): transfer
    codings beside chunked, chunks in HTTP/1.0, requests without a head."""
    codings = [each.strip().lower() for each in request.headers.getall(hdrs.TRANSFER_ENCODING, ())]
    if request.version < (HttpVersion11 if codings else HttpVersion10) or codings not in ([], ["chunked"]):
        response = _refuse_request(400, None)
        response.force_close()
        return response
    return await handler(request)


class EdgeServer(web.Server):
    """Makes an `EdgeProtocol` for each connection."""

    def __init__(self, clock: Clock, handler: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(handler, **options)
        self.clock = clock

    def __call__(self) -> web.RequestHandler:
        return EdgeProtocol(self, self.clock.ticks(), loop=self._loop, **self._kwargs)

    def check_connections(self) -> None:
        """Check the progress of all clients."""
        now = self.clock.ticks()
        for each in self.connections:
            if isinstance(each, EdgeProtocol):
                each.check_progress(now)


class EdgeRunner(web.AppRunner):
    """Runs an application with `EdgeServer`, and a worker that checks for slow clients."""

    def __init__(self, app: web.Application, clock: Clock, **options: Any) -> None:  # noqa: ANN401
        super().__init__(app, **options)
        self._clock = clock
        self._worker: Worker | None = None
        self.front: EdgeServer | None = None

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        options: dict[str, Any] = {**server._kwargs, "handler_cancellation": server.handler_cancellation}
        options |= {"request_factory": server.request_factory, "loop": server._loop}
        self.front = EdgeServer(self._clock, server.request_handler, **options)
        self._worker = Worker("slow clients", self.front.check_connections, SLOW_CLIENT_SECONDS)
        self._worker.start()
        return self.front

    async def cleanup(self) -> None:
        if self._worker is not None:
            await self._worker.stop()
        await super().cleanup()


class Drain:
    """While an edge drains, each response is the last of its connection, so that the client opens another one, to
    another process."""

    def __init__(self) -> None:
        self._begun = False

    def begin(self) -> None:
        self._begun = True

    def middleware(self) -> Middleware:
        @web.middleware
        async def drain(request: web.Request, handler: Handler) -> web.StreamResponse:
            response = await handler(request)
            if self._begun and not response.prepared:
                response.force_close()
            return response

        return drain


DRAIN = web.AppKey("drain", Drain)


async def wait_until_accepted(sockets: Sequence[socket]) -> None:
    """Wait until no connection waits to be accepted: such are reset when the last process closes the socket."""
    while has_queued(sockets):
        await asyncio.sleep(0)


async def wait_until_closed(runner: web.BaseRunner, seconds: float = DRAIN_SECONDS) -> None:
    """Wait until every connection is closed, or for so long. Requests on open connections are answered meanwhile."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while runner.server is not None and runner.server.connections and loop.time() < end:
        await asyncio.sleep(_DRAIN_LOOK_SECONDS)


def make_runner(app: web.Application, clock: Clock | None = None) -> EdgeRunner:
    """Return a runner without an access log. The handler of a client that is gone is cancelled. Handlers decompress
    bodies themselves, within their limits."""
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


async def serve_on(
    app: web.Application,
    sockets: Sequence[socket],
    *,
    stop: asyncio.Event,
    ready: Callable[[int], None] = lambda port: None,
    leaving: Callable[[], None] = lambda: None,
    certificates: Certificates | None = None,
) -> None:
    """Serve on listening sockets, which other processes may share, until `stop` is set; then finish open requests and
    close the sockets. `ready` is called with the open port, `leaving` when draining begins. With certificates only TLS
    is served."""
    runner = make_runner(app)
    await runner.setup()
    context = None if certificates is None else certificates.context
    workers = [] if certificates is None else [_renew_certificates(certificates)]
    for worker in workers:
        worker.start()
    try:
        sites = [web.SockSite(runner, each, backlog=BACKLOG, ssl_context=context) for each in sockets]
        for site in sites:
            await site.start()
        ready(sockets[0].getsockname()[1])
        await stop.wait()
        leaving()
        await _drain_connections(runner, sites, sockets)
    finally:
        for worker in workers:
            await worker.stop()
        await runner.cleanup()
        close_sockets(sockets)


def _renew_certificates(certificates: Certificates) -> Worker:
    return Worker("certificates", partial(asyncio.to_thread, certificates.reload), CERTIFICATE_SECONDS)


async def _drain_connections(runner: web.AppRunner, sites: Sequence[web.SockSite], sockets: Sequence[socket]) -> None:
    """Accept no more connections, send listeners away, and answer requests on open connections until they close."""
    await wait_until_accepted(sockets)
    for site in sites:
        await site.stop()
    runner.app[DRAIN].begin()
    await runner.app.shutdown()
    await wait_until_closed(runner)


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM or SIGINT sets."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
