"""Transports: a streaming response, a long poll or a WebSocket session, for one subscribable or for many.

Over a WebSocket a client may acknowledge, subscribe and unsubscribe meanwhile. A long poll answers as soon as there
is
a message, or when the client has waited long enough.
"""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import orjson
import zstandard
from aiohttp import web

from triplewire.http.auth import TOKEN_PARAMETER
from triplewire.http.delivery.connections import JsonObject, WebSocketConnection, is_chunked, wants_websocket
from triplewire.http.delivery.merger import MergedBatch, Merger
from triplewire.http.delivery.options import DeliveryOptions, parse_options, parse_websocket_options
from triplewire.http.delivery.replay import ResumeRequest
from triplewire.http.delivery.requests import parse_number
from triplewire.http.delivery.topics import Acceptor, ClientState, Subscribable, render_greeting, stream_headers
from triplewire.http.delivery.writer import FlowControl, MessageWriter, WriterState
from triplewire.http.formats.messages import MessageFormat, ResumeToken
from triplewire.http.formats.sse import WEBSOCKET
from triplewire.http.openapi import operations, stream_operations
from triplewire.http.openapi.operations import ACK_MESSAGES, POLL_SECONDS_MOST
from triplewire.model import START, format_position
from triplewire.model.errors import BadRequest

PAGE_BYTES: Final = 8 * 1024 * 1024
"""Text of the events in one page; one event more may begin within it. An edge holds it twice while it is written."""

POLL_SECONDS: Final = 30.0
"""How long a client that polls waits for something to come, unless it says otherwise. Many proxies give up at 60."""


# Conversations: clients over WebSockets, what they are told and what they may say meanwhile.

FindSubscribable = Callable[[str, str, ResumeRequest | None], Awaitable[Subscribable[Any]]]
"""Finds a subject by its kind, its name, and after what it is to be told."""

_BEGIN = {"subscribe": "subscription", "stream": "stream", "query": "query"}
_STOP = {"unsubscribe": "subscription", "unstream": "stream", "unquery": "query"}
_PLURAL = {"subscription": "subscriptions", "stream": "streams", "query": "queries"}


def parse_flow_control(request: web.Request, begin: str) -> FlowControl | None:
    """The window of a client that acknowledges, which has had everything up to an id. Raises BadRequest."""
    asked = request.query.get("ack", "0")
    if asked not in ("0", "1"):
        raise BadRequest(f"ack must be 1 or 0, not {asked!r}")
    messages = int(parse_number(request, "window", ACK_MESSAGES, ACK_MESSAGES, least=1))
    return FlowControl(begin, messages) if asked == "1" else None


@dataclass(frozen=True)
class WebSocketSessions:
    """Lets clients in over WebSockets."""

    reception: Acceptor

    async def listen(self, request: web.Request, subject: Subscribable[Any]) -> web.StreamResponse:
        """To one subject: together with others that get the same bytes, unless the client acknowledges."""
        window = parse_flow_control(request, format_position(subject.after))
        if window is not None:
            return await self.read(request, [subject], Merger(ResumeToken(subject.after), WEBSOCKET), window)
        manner = parse_websocket_options(request, subject.window)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(subject.holding())
            wire = await WebSocketConnection.open(request)
            self.reception.lead(wire, manner, subject, stack.pop_all())
        await wire.serve(reject_message)
        return wire.response

    async def read(
        self,
        request: web.Request,
        subjects: Sequence[Subscribable[Any]],
        reader: Merger,
        window: FlowControl | None,
        find: FindSubscribable | None = None,
    ) -> web.StreamResponse:
        """At the client's own pace. `find` finds those that it names later."""
        async with AsyncExitStack() as stack:
            stack.callback(reader.close)
            wire = await WebSocketConnection.open(request)
            at = self.reception
            teller = MessageWriter(reader, wire, DeliveryOptions(WEBSOCKET), at.metrics, at.patience, window)
            teller.greet(render_greeting(WEBSOCKET, reader.id(reader.mark), subjects))
            talk = WebSocketSession(reader, teller, window, find, stack)
            for each in subjects:
                await talk.add(each)
            task = self.reception.keep(teller.told(stays=find is not None))
            stack.callback(task.cancel)
            await wire.serve(talk.hear)
        return wire.response


@dataclass(frozen=True)
class WebSocketSession:
    """What one client says."""

    reader: Merger
    teller: MessageWriter
    window: FlowControl | None
    find: FindSubscribable | None
    stack: AsyncExitStack
    held: dict[str, AsyncExitStack] = field(default_factory=dict)

    async def hear(self, said: JsonObject) -> None:
        """Do what is said. Raises a TriplewireError that says why it cannot be done."""
        verb = next((each for each in ("ack", *_BEGIN, *_STOP) if each in said), "")
        name = said.get(verb, "")
        if not isinstance(name, str):
            raise BadRequest(f"{verb} must be a text, not {name!r}")
        if verb == "ack":
            self._acknowledge(name)
        elif self.find is not None and verb in _BEGIN:
            await self._begin(self.find, _BEGIN[verb], name, said.get("after"))
        elif self.find is not None and verb in _STOP:
            await self._stop(_STOP[verb], name)
        else:
            await reject_message(said)

    async def add(self, subject: Subscribable[Any]) -> None:
        """Read a subject too, and hold what it holds."""
        held = self.held[subject.name] = await self.stack.enter_async_context(AsyncExitStack())
        await held.enter_async_context(subject.holding())
        self.reader.add(subject)

    def _acknowledge(self, id: str) -> None:
        if self.window is None:
            raise BadRequest("acknowledgements are asked for with ?ack=1")
        if not self.window.acknowledge(id):
            raise BadRequest(f"{id!r} waits for no acknowledgement")

    async def _begin(self, find: FindSubscribable, kind: str, name: str, after: object) -> None:
        if not isinstance(after, str | None):
            raise BadRequest(f"after must be a text, not {after!r}")
        if len(self.reader) >= stream_operations.CONNECTION_SOURCES:
            raise BadRequest(
                f"{stream_operations.CONNECTION_SOURCES} are listened to already over this connection; open another"
            )
        subject = await find(kind, name, None if after is None else ResumeRequest.parsed(after))
        if subject.name in self.reader:
            raise BadRequest(f"{subject.name} is listened to already")
        missed: JsonObject = {} if subject.earliest is None else {"earliest": format_position(subject.earliest)}
        position = format_position(subject.after)
        self.teller.say(WEBSOCKET.notice("position", **{kind: name}, position=position, missed=bool(missed), **missed))
        await self.add(subject)

    async def _stop(self, kind: str, name: str) -> None:
        path = f"{_PLURAL[kind]}/{name}"
        if path not in self.reader:
            raise BadRequest(f"{path} is not listened to")
        self.reader.drop(path)
        await self.held.pop(path).aclose()
        self.teller.say(WEBSOCKET.notice("left", **{kind: name}))


async def reject_message(said: JsonObject) -> None:
    """What clients say where nothing is to be said."""
    words = ", ".join((*_BEGIN, *_STOP))
    known = f"?ack=1 lets a client say ack, and GET /notifications any of {words}"
    raise BadRequest(f"{orjson.dumps(said).decode()[:100]} is not understood here; {known}")


# Polls: answers that come as soon as there is something to tell, or when the client has waited long enough.

_PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstandard.compress, "": bytes}


@dataclass(frozen=True)
class PollRequest:
    """How long a client waits at most, and how many messages it takes."""

    wait: float
    limit: int


def parse_poll(request: web.Request) -> PollRequest | None:
    """What a request asks for; None where it asks for an answer without an end. Raises BadRequest."""
    mode = request.query.get("mode", "stream")
    if mode not in ("stream", "poll"):
        raise BadRequest(f"there is no mode {mode!r}; there are stream and poll")
    if mode == "stream":
        return None
    wait = parse_number(request, "wait", POLL_SECONDS, POLL_SECONDS_MOST)
    return PollRequest(
        wait, int(parse_number(request, "limit", operations.HISTORY_EVENTS, operations.HISTORY_EVENTS, least=1))
    )


async def answer_poll(
    request: web.Request, reader: Merger, poll: PollRequest, manner: DeliveryOptions, *, first: bytes = b"", least: int
) -> web.Response:
    """What there is, or what comes first. `first` is said before it; everything up to `least` is waited for, however
    short the client waits."""
    batch = await reader.next(0 if first else poll.wait, least)
    while _wants_more(batch, poll.limit, least) and reader.sent_away is None:
        # A page of history, or a pass of the feed, may end before what was there when the client came.
        more = await reader.next(0, least)
        batch = MergedBatch([*batch.messages, *more.messages], more.mark, more.ends)
    return _make_response(request, reader, _limit_batch(batch, poll.limit), manner, first)


def _wants_more(batch: MergedBatch, limit: int, least: int) -> bool:
    """Whether more of what there was is to come, and has room in one answer."""
    if batch.ends or batch.mark.position >= least or not 0 < len(batch.messages) < limit:
        return False
    return sum(len(part) for _, part in batch.messages) < PAGE_BYTES


def _limit_batch(batch: MergedBatch, limit: int) -> MergedBatch:
    if len(batch.messages) <= limit:
        return batch
    return MergedBatch(batch.messages[:limit], batch.messages[limit - 1][0])


def _make_response(
    request: web.Request, reader: Merger, batch: MergedBatch, manner: DeliveryOptions, first: bytes
) -> web.Response:
    told = [part for _, part in batch.messages]
    lasts = [*batch.ends, *([] if reader.sent_away is None else [reader.sent_away])]
    ends = [last(WriterState(batch.mark.cursor, manner)) for last in lasts]
    messages = [part for part in (first, *told, *ends) if part]
    position = reader.id(batch.mark)
    headers = {"Cache-Control": "no-store", "Position": position}
    if len(reader) or not batch.ends:
        # Without a token that was in the address: answers end up in more places than requests.
        following = request.rel_url.without_query_params(TOKEN_PARAMETER).update_query(after=position)
        headers["Link"] = f'<{following}>; rel="next"'
    if not messages:
        return web.Response(status=204, headers=headers)
    encoding = manner.encoding.name
    headers |= {"Content-Type": manner.format.media_type, "Vary": "Accept, Accept-Encoding"}
    headers |= {"Content-Encoding": encoding} if encoding else {}
    return web.Response(body=_PACK[encoding](manner.format.document(messages)), headers=headers)


Subscribables = Sequence[Subscribable[Any]]


@dataclass(frozen=True)
class Transports:
    """Tells clients in the way that they ask for."""

    reception: Acceptor
    conversations: WebSocketSessions

    async def one(self, request: web.Request, subject: Subscribable[Any]) -> web.StreamResponse:
        """Of one subject. Raises NotAcceptable or BadRequest."""
        if wants_websocket(request):
            return await self.conversations.listen(request, subject)
        poll = parse_poll(request)
        if poll is None:
            return await self.reception.welcome(request, subject)
        manner = parse_options(request, subject.window)
        return await self._answer(request, poll, manner, [subject], Merger(ResumeToken(subject.after), manner.format))

    async def told_in(
        self, request: web.Request, subjects: Subscribables, mark: ResumeToken, format: MessageFormat
    ) -> web.StreamResponse:
        """Of many, in one order, in a format that does not depend on what the client accepts."""
        return await self._tell(request, DeliveryOptions(format), subjects, Merger(mark, format, many=True))

    async def many(
        self, request: web.Request, subjects: Subscribables, mark: ResumeToken, find: FindSubscribable
    ) -> web.StreamResponse:
        """Of many, in one order. Over a WebSocket others can be found later."""
        if wants_websocket(request):
            reader = Merger(mark, WEBSOCKET, many=True)
            return await self.conversations.read(
                request, subjects, reader, parse_flow_control(request, str(mark)), find
            )
        poll, manner = parse_poll(request), parse_options(request, 0.0)
        reader = Merger(mark, manner.format, many=True)
        if poll is not None:
            return await self._answer(request, poll, manner, subjects, reader)
        return await self._tell(request, manner, subjects, reader)

    async def _answer(
        self, request: web.Request, poll: PollRequest, manner: DeliveryOptions, subjects: Subscribables, reader: Merger
    ) -> web.StreamResponse:
        missed = any(each.earliest is not None for each in subjects)
        first = render_greeting(manner.format, reader.id(reader.mark), subjects) if missed else b""
        # What was published before the poll came is in its answer, however short it waits.
        least = await self.reception.head() if all(each.order == START for each in subjects) else START
        async with AsyncExitStack() as stack:
            await _hold(stack, subjects, reader)
            return await answer_poll(request, reader, poll, manner, first=first, least=least)

    async def _tell(
        self, request: web.Request, manner: DeliveryOptions, subjects: Subscribables, reader: Merger
    ) -> web.StreamResponse:
        async with AsyncExitStack() as stack:
            await _hold(stack, subjects, reader)
            response, seat = await self.reception.seats.take(request, stream_headers(manner))
            manner, at = replace(manner, chunked=is_chunked(response)), self.reception
            teller = MessageWriter(reader, seat, manner, at.metrics, at.patience)
            teller.greet(manner.format.head + render_greeting(manner.format, reader.id(reader.mark), subjects))
            seat.lost(partial(reader.send_away, _no_message))
            self.reception.keep(_run_writer(teller, stack.pop_all()))
        return response


async def _hold(stack: AsyncExitStack, subjects: Subscribables, reader: Merger) -> None:
    """Have subjects read for as long as it lasts."""
    stack.callback(reader.close)
    for each in subjects:
        await stack.enter_async_context(each.holding())
        reader.add(each)


def _no_message(gone: ClientState) -> bytes:
    """What is told to those who are gone."""
    return b""


async def _run_writer(teller: MessageWriter, stack: AsyncExitStack) -> None:
    async with stack:
        await teller.told()
