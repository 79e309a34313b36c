"""Transports: a streaming response, a long poll or a WebSocket session, for one subscribable or for many.

Over a WebSocket a client may acknowledge, subscribe and unsubscribe meanwhile. A long poll answers as soon as there is
a message, or when the client has waited long enough.
"""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson
import zstandard
from aiohttp import web

from triplewire.http.auth import TOKEN_PARAMETER
from triplewire.http.delivery.connections import JsonObject, WebSocketConnection, is_chunked, wants_websocket
from triplewire.http.delivery.merger import FlowControl, MergedBatch, Merger, MessageWriter
from triplewire.http.delivery.options import DeliveryOptions, parse_options, parse_websocket_options
from triplewire.http.delivery.replay import ResumeRequest, parse_number
from triplewire.http.delivery.topics import Acceptor, Subscribable, render_greeting, stream_headers
from triplewire.http.formats.messages import NO_MESSAGE, MessageFormat, ResumeToken
from triplewire.http.formats.sse import WEBSOCKET
from triplewire.http.openapi import stream_operations
from triplewire.http.openapi.operations import ACK_MESSAGES, HISTORY_EVENTS, POLL_SECONDS_MOST
from triplewire.model import START, format_position
from triplewire.model.errors import BadRequest

PAGE_BYTES: Final = 8 * 1024 * 1024
"""Bytes of the events in one page; one more event may begin within them. An edge holds a page twice while it is
written."""

POLL_SECONDS: Final = 30.0
"""How long a long poll waits for a message, unless the client says otherwise. Many proxies give up at 60."""

FindSubscribable = Callable[[str, str, ResumeRequest | None], Awaitable[Subscribable[Any]]]
"""Finds a subscribable by its kind, its name, and the position to resume from."""

Subscribables = Sequence[Subscribable[Any]]

_SUBSCRIBE = {"subscribe": "subscription", "stream": "stream", "query": "query"}
_UNSUBSCRIBE = {"unsubscribe": "subscription", "unstream": "stream", "unquery": "query"}
_PLURAL = {"subscription": "subscriptions", "stream": "streams", "query": "queries"}
_COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstandard.compress, "": bytes}


def parse_flow_control(request: web.Request, begin: str) -> FlowControl | None:
    """Return the flow control of a client that acknowledges, and has everything up to an id. Raises BadRequest."""
    given = request.query.get("ack", "0")
    if given not in ("0", "1"):
        raise BadRequest(f"ack must be 1 or 0, not {given!r}")
    messages = int(parse_number(request, "window", ACK_MESSAGES, ACK_MESSAGES, least=1))
    return FlowControl(begin, messages) if given == "1" else None


def _make_merger(token: ResumeToken, flow: FlowControl | None, *, many: bool) -> Merger:
    if flow is None:
        return Merger(token, WEBSOCKET, many=many)
    return Merger(token, WEBSOCKET, many=many, on_send_away=flow.release)


@dataclass(frozen=True)
class WebSocketSession:
    """Handles the messages of one client."""

    merger: Merger
    writer: MessageWriter
    flow: FlowControl | None
    find: FindSubscribable | None
    stack: AsyncExitStack
    held: dict[str, AsyncExitStack] = field(default_factory=dict)

    async def handle(self, message: JsonObject) -> None:
        """Carry out a message. Raises a TriplewireError that says why it cannot be."""
        verb = next((each for each in ("ack", *_SUBSCRIBE, *_UNSUBSCRIBE) if each in message), "")
        name = message.get(verb, "")
        if not isinstance(name, str):
            raise BadRequest(f"{verb} must be a text, not {name!r}")
        if verb == "ack":
            self._acknowledge(name)
        elif self.find is not None and verb in _SUBSCRIBE:
            await self._subscribe(self.find, _SUBSCRIBE[verb], name, message.get("after"))
        elif self.find is not None and verb in _UNSUBSCRIBE:
            await self._unsubscribe(_UNSUBSCRIBE[verb], name)
        else:
            await reject_message(message)

    async def add(self, subject: Subscribable[Any]) -> None:
        held = self.held[subject.name] = await self.stack.enter_async_context(AsyncExitStack())
        await held.enter_async_context(subject.hold())
        self.merger.add(subject)

    def _acknowledge(self, id: str) -> None:
        if self.flow is None:
            raise BadRequest("acknowledgements need ?ack=1")
        if not self.flow.acknowledge(id):
            raise BadRequest(f"{id!r} waits for no acknowledgement")

    async def _subscribe(self, find: FindSubscribable, kind: str, name: str, after: object) -> None:
        if not isinstance(after, str | None):
            raise BadRequest(f"after must be a text, not {after!r}")
        most = stream_operations.CONNECTION_SOURCES
        if len(self.merger) >= most:
            raise BadRequest(f"one connection can listen to {most} streams, subscriptions and queries; open another")
        subject = await find(kind, name, None if after is None else ResumeRequest.parsed(after))
        if subject.name in self.merger:
            raise BadRequest(f"this connection listens to {subject.name} already")
        missed: JsonObject = {} if subject.earliest is None else {"earliest": format_position(subject.earliest)}
        fields = {kind: name, "position": format_position(subject.after), "missed": bool(missed), **missed}
        self.writer.write(WEBSOCKET.notice("position", **fields))
        await self.add(subject)

    async def _unsubscribe(self, kind: str, name: str) -> None:
        path = f"{_PLURAL[kind]}/{name}"
        if path not in self.merger:
            raise BadRequest(f"this connection does not listen to {path}")
        self.merger.drop(path)
        await self.held.pop(path).aclose()
        self.writer.write(WEBSOCKET.notice("left", **{kind: name}))


async def reject_message(message: JsonObject) -> None:
    """Raises BadRequest for a message of a client where none is expected."""
    verbs = ", ".join((*_SUBSCRIBE, *_UNSUBSCRIBE))
    known = f"with ?ack=1 a client may send ack, and over GET /notifications any of {verbs}"
    raise BadRequest(f"{orjson.dumps(message).decode()[:100]} is not understood here; {known}")


@dataclass(frozen=True)
class PollRequest:
    """How many seconds a long poll waits, and how many messages it takes."""

    wait: float
    limit: int


def parse_poll(request: web.Request) -> PollRequest | None:
    """Return the long poll that a request asks for; None for a streaming response. Raises BadRequest."""
    mode = request.query.get("mode", "stream")
    if mode not in ("stream", "poll"):
        raise BadRequest(f"there is no mode {mode!r}; there are stream and poll")
    if mode == "stream":
        return None
    wait = parse_number(request, "wait", POLL_SECONDS, POLL_SECONDS_MOST)
    return PollRequest(wait, int(parse_number(request, "limit", HISTORY_EVENTS, HISTORY_EVENTS, least=1)))


async def answer_poll(
    request: web.Request, merger: Merger, poll: PollRequest, options: DeliveryOptions, *, first: bytes = b"", least: int
) -> web.Response:
    """Answer with the messages that there are, or come first, after the notice `first`; all messages up to `least` are
    waited for, however short the poll."""
    batch = await merger.next(0 if first else poll.wait, least)
    while _wants_more(batch, poll.limit, least) and merger.sent_away is None:
        # A page of history, or a pass of the live source, may end before the messages that were there at the request.
        more = await merger.next(0, least)
        batch = MergedBatch([*batch.messages, *more.messages], more.token, more.ends)
    return _make_response(request, merger, _limit_batch(batch, poll.limit), options, first)


def _wants_more(batch: MergedBatch, limit: int, least: int) -> bool:
    """Return whether more of the messages up to `least` are to come, and fit into one response."""
    if batch.ends or batch.token.position >= least or not 0 < len(batch.messages) < limit:
        return False
    return sum(len(part) for _, part in batch.messages) < PAGE_BYTES


def _limit_batch(batch: MergedBatch, limit: int) -> MergedBatch:
    if len(batch.messages) <= limit:
        return batch
    return MergedBatch(batch.messages[:limit], batch.messages[limit - 1][0])


def _make_response(
    request: web.Request, merger: Merger, batch: MergedBatch, options: DeliveryOptions, first: bytes
) -> web.Response:
    ends = [*batch.ends, *([] if merger.sent_away is None else [merger.sent_away])]
    last = [each.render(options.format, batch.token.cursor) for each in ends]
    messages = [part for part in (first, *(part for _, part in batch.messages), *last) if part]
    position = merger.id(batch.token)
    headers = {"Cache-Control": "no-store", "Position": position}
    if len(merger) or not batch.ends:
        # Without a token that was in the address: responses end up in more places than requests.
        following = request.rel_url.without_query_params(TOKEN_PARAMETER).update_query(after=position)
        headers["Link"] = f'<{following}>; rel="next"'
    if not messages:
        return web.Response(status=204, headers=headers)
    encoding = options.encoding.name
    headers |= {"Content-Type": options.format.media_type, "Vary": "Accept, Accept-Encoding"}
    headers |= {"Content-Encoding": encoding} if encoding else {}
    return web.Response(body=_COMPRESS[encoding](options.format.document(messages)), headers=headers)


@dataclass(frozen=True)
class Transports:
    """Serves clients by the transport that they ask for."""

    acceptor: Acceptor

    async def serve(self, request: web.Request, subject: Subscribable[Any]) -> web.StreamResponse:
        """Serve one subscribable. Raises NotAcceptable or BadRequest."""
        if wants_websocket(request):
            return await self._listen(request, subject)
        poll = parse_poll(request)
        if poll is None:
            return await self.acceptor.accept(request, subject)
        options = parse_options(request, subject.linger)
        merger = Merger(ResumeToken(subject.after), options.format)
        return await self._poll(request, poll, options, [subject], merger)

    async def serve_format(
        self, request: web.Request, subjects: Subscribables, token: ResumeToken, format: MessageFormat
    ) -> web.StreamResponse:
        """Serve many, in one order, in a format that does not depend on what the client accepts."""
        return await self._stream(request, DeliveryOptions(format), subjects, Merger(token, format, many=True))

    async def serve_many(
        self, request: web.Request, subjects: Subscribables, token: ResumeToken, find: FindSubscribable
    ) -> web.StreamResponse:
        """Serve many, in one order. Over a WebSocket the client may name others later."""
        if wants_websocket(request):
            flow = parse_flow_control(request, str(token))
            return await self._merge(request, subjects, _make_merger(token, flow, many=True), flow, find)
        poll, options = parse_poll(request), parse_options(request, 0.0)
        merger = Merger(token, options.format, many=True)
        if poll is not None:
            return await self._poll(request, poll, options, subjects, merger)
        return await self._stream(request, options, subjects, merger)

    async def _listen(self, request: web.Request, subject: Subscribable[Any]) -> web.StreamResponse:
        """Serve one over a WebSocket, together with clients that get the same bytes, unless this one acknowledges."""
        flow = parse_flow_control(request, format_position(subject.after))
        if flow is not None:
            merger = _make_merger(ResumeToken(subject.after), flow, many=False)
            return await self._merge(request, [subject], merger, flow)
        options = parse_websocket_options(request, subject.linger)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(subject.hold())
            connection = await WebSocketConnection.open(request, subject.topic.lose)
            self.acceptor.start(connection, options, subject, stack.pop_all())
        await connection.serve(reject_message)
        return connection.response

    async def _merge(
        self,
        request: web.Request,
        subjects: Subscribables,
        merger: Merger,
        flow: FlowControl | None,
        find: FindSubscribable | None = None,
    ) -> web.StreamResponse:
        """Serve subscribables over a WebSocket, at the client's own pace. `find` finds those that it names later."""
        async with AsyncExitStack() as stack:
            stack.callback(merger.close)
            connection = await WebSocketConnection.open(request)
            metrics, timeout = self.acceptor.metrics, self.acceptor.ack_timeout
            writer = MessageWriter(merger, connection, DeliveryOptions(WEBSOCKET), metrics, timeout, flow)
            writer.greet(render_greeting(WEBSOCKET, merger.id(merger.token), subjects))
            session = WebSocketSession(merger, writer, flow, find, stack)
            for each in subjects:
                await session.add(each)
            task = self.acceptor.spawn(writer.run(stays=find is not None))
            stack.callback(task.cancel)
            await connection.serve(session.handle)
        return connection.response

    async def _poll(
        self, request: web.Request, poll: PollRequest, options: DeliveryOptions, subjects: Subscribables, merger: Merger
    ) -> web.StreamResponse:
        missed = any(each.earliest is not None for each in subjects)
        first = render_greeting(options.format, merger.id(merger.token), subjects) if missed else b""
        # Events that were published before the request are in its response, however short it waits.
        least = await self.acceptor.head() if all(each.order == START for each in subjects) else START
        async with AsyncExitStack() as stack:
            await _hold(stack, subjects, merger)
            return await answer_poll(request, merger, poll, options, first=first, least=least)

    async def _stream(
        self, request: web.Request, options: DeliveryOptions, subjects: Subscribables, merger: Merger
    ) -> web.StreamResponse:
        async with AsyncExitStack() as stack:
            await _hold(stack, subjects, merger)
            response, connection = await self.acceptor.connections.take_over(
                request, stream_headers(options), lambda _: merger.send_away(NO_MESSAGE)
            )
            options = replace(options, chunked=is_chunked(response))
            writer = MessageWriter(merger, connection, options, self.acceptor.metrics, self.acceptor.ack_timeout)
            writer.greet(options.format.head + render_greeting(options.format, merger.id(merger.token), subjects))
            if connection.gone:
                merger.send_away(NO_MESSAGE)
            self.acceptor.spawn(_run_writer(writer, stack.pop_all()))
        return response


async def _hold(stack: AsyncExitStack, subjects: Subscribables, merger: Merger) -> None:
    """Add subscribables to a merger until the stack is closed."""
    stack.callback(merger.close)
    for each in subjects:
        await stack.enter_async_context(each.hold())
        merger.add(each)


async def _run_writer(writer: MessageWriter, stack: AsyncExitStack) -> None:
    async with stack:
        await writer.run()
