"""Live topics: the clients that listen to each stream or subscription, how a client moves from history to the present,
and the acceptor that lets clients in.

A topic has a position. A listener enters when its own cursor has reached it; both are compared and the listener is
entered without yielding to the event loop in between, hence there is no gap. A message is written only to listeners
whose cursor is below it, hence there is no repeat.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from aiohttp import web

from triplewire.config.metrics import Metrics
from triplewire.http.delivery.channels import CLIENT_BUFFER_BYTES, CONTEXT_SECONDS, CachedMessages, Channel, Listener
from triplewire.http.delivery.connections import ClientConnection, HttpConnections, is_chunked
from triplewire.http.delivery.options import DeliveryOptions, LoopLoad, parse_options
from triplewire.http.formats.messages import (
    NO_MESSAGE,
    ClosingMessage,
    Frames,
    MessageFormat,
    failed_message,
    gap_notice,
)
from triplewire.http.ports import ThreadPool
from triplewire.model import START, format_position
from triplewire.model.errors import Unavailable
from triplewire.storage.log.ports import EdgeLog

LISTENERS: Final = 15_000
"""Open listening connections of one edge process: below the usual limit of open files."""

ACK_SECONDS: Final = 60.0
"""How long a client may read, or acknowledge, nothing before it is told that it is too slow."""

_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Vary": "Accept, Accept-Encoding"}

logger = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)


class HistoryFailed(Exception):
    """A history cannot go on. `last` is the last message to its client."""

    def __init__(self, last: ClosingMessage | str) -> None:
        super().__init__(last)
        self.last = failed_message(last) if isinstance(last, str) else last


class TopicHistory(Protocol):
    """The messages before the present of a topic, for one client."""

    @property
    def floor(self) -> int:
        """Position up to which a client must go through history, wherever the topic is."""

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        """Return the next messages above the cursor, boundedly many, and the position up to which these are all.

        While the topic's position, or the floor, is above the cursor, steps get there sooner or later. Raises
        HistoryFailed.
        """


class TopicReader(Protocol):
    """A member of a topic that takes messages at a pace of its own."""

    def push(self, messages: CachedMessages) -> int:
        """Take messages in order; return how many were new."""

    def settle(self) -> None:
        """Notice that a pass is over."""

    def finish(self, last: ClosingMessage) -> None:
        """Notice that no more messages of the key come by this topic."""

    def send_away(self, last: ClosingMessage) -> None:
        """Notice that no more messages come from this edge."""


class LiveTopic(Generic[Key]):
    """Listeners by key, those with equal options in one channel."""

    def __init__(
        self,
        position: int = 0,
        load: LoopLoad | None = None,
        *,
        on_enter: Callable[[], None] = lambda: None,
        on_close: Callable[[Key, Channel], None] = lambda key, channel: None,
        context_seconds: float = CONTEXT_SECONDS,
    ) -> None:
        """`on_enter` is called when a client has entered, `on_close` when the last listener of a channel is gone."""
        self.position = self.settled = position
        """Messages up to the second were given to all who are here; it follows the first when a pass is over."""
        self._load = load or LoopLoad()
        self._on_enter = on_enter
        self._on_close = on_close
        self._context_seconds = context_seconds
        self._live: dict[Key, dict[DeliveryOptions, Channel]] = {}
        self._listeners: dict[ClientConnection, Listener] = {}
        self._attached: dict[Key, dict[TopicReader, None]] = {}

    def __len__(self) -> int:
        """Return the number of clients, those that still go through history included."""
        return len(self._listeners) + sum(map(len, self._attached.values()))

    def __iter__(self) -> Iterator[Key]:
        """Iterate over the keys that have live clients."""
        return iter({**self._live, **self._attached})

    def __contains__(self, key: Key) -> bool:
        return key in self._live or key in self._attached

    @property
    def is_empty(self) -> bool:
        """Whether no client is live."""
        return not self._live and not self._attached

    def channels(self, key: Key) -> Sequence[Channel]:
        """Return the channels of a key, those with priority first."""
        return sorted(self._live.get(key, {}).values(), key=lambda each: not each.options.priority)

    def open(
        self,
        key: Key,
        connection: ClientConnection,
        cursor: int,
        metrics: Metrics,
        limit: int = CLIENT_BUFFER_BYTES,
        options: DeliveryOptions = DeliveryOptions(),  # noqa: B008
    ) -> Listener:
        """Make a listener of a connection, which leaves the topic when it is closed. The connection calls `lose` when
        the client is gone."""
        listener = Listener(connection, cursor, metrics, limit, options, partial(self._leave, key))
        self._listeners[connection] = listener
        if connection.gone:
            listener.leave()
        return listener

    def lose(self, connection: ClientConnection) -> None:
        """Let the listener of a connection leave, since its client is gone."""
        listener = self._listeners.get(connection)
        if listener is not None:
            listener.leave()

    async def listen(self, key: Key, listener: Listener, history: TopicHistory) -> None:
        """Take a listener that `open` has made through history into the topic, where it stays until it is closed."""
        with suppress(ConnectionError):
            try:
                while not listener.closed and listener.cursor < max(self.position, history.floor):
                    await listener.replay(*await history.step(listener.cursor, listener.options.format))
            except HistoryFailed as error:
                listener.finish(error.last)
        if not listener.closed:
            self._channel(key, listener.options).enter(listener)
            self._on_enter()

    def push(self, key: Key, messages: CachedMessages) -> int:
        """Give messages to all clients of a key; return how many times they are written."""
        written = sum(channel.push(messages) for channel in self.channels(key))
        return written + sum(each.push(messages) for each in tuple(self._attached.get(key, ())))

    def settle(self) -> None:
        """End a pass: messages up to the position were given to all."""
        self.settled = self.position
        for each in self._all_attached():
            each.settle()

    def attach(self, key: Key, reader: TopicReader, history: TopicHistory) -> None:
        """Enter a reader that has everything up to the position from its history."""
        self._attached.setdefault(key, {})[reader] = None
        self._on_enter()

    def detach(self, key: Key, reader: TopicReader) -> None:
        here = self._attached.get(key, {})
        here.pop(reader, None)
        if not here:
            self._attached.pop(key, None)

    def keep_alive(self) -> None:
        """Write a comment to all listeners."""
        for channel in self._channels():
            channel.write(channel.options.format.comment)

    def close(self, last: ClosingMessage) -> None:
        """Send all clients away."""
        for channel in self._channels():
            channel.close(last)
        for listener in tuple(self._listeners.values()):
            listener.finish(last)
        for reader in self._all_attached():
            reader.send_away(last)

    def finish(self, key: Key, last: ClosingMessage) -> None:
        """Send the live clients of a key away."""
        for channel in self.channels(key):
            channel.close(last)
        for reader in tuple(self._attached.get(key, ())):
            reader.finish(last)

    def _all_attached(self) -> list[TopicReader]:
        return [each for here in self._attached.values() for each in here]

    def _channels(self) -> list[Channel]:
        return [channel for channels in self._live.values() for channel in channels.values()]

    def _channel(self, key: Key, options: DeliveryOptions) -> Channel:
        channels = self._live.setdefault(key, {})
        channel = channels.get(options)
        if channel is None:
            channel = channels[options] = Channel(options, self._load, context_seconds=self._context_seconds)
        return channel

    def _leave(self, key: Key, listener: Listener) -> None:
        self._listeners.pop(listener.connection, None)
        channels = self._live.get(key, {})
        channel = channels.get(listener.options)
        if channel is None:
            return
        channel.leave(listener)
        if not len(channel):
            channel.flush()
            del channels[listener.options]
            self._on_close(key, channel)
        if not channels:
            self._live.pop(key, None)


@dataclass(frozen=True)
class Subscribable(Generic[Key]):
    """A stream, subscription or query that a client listens to, and the position after which it does."""

    name: str
    key: Key
    topic: LiveTopic[Key]
    history: TopicHistory
    after: int
    earliest: int | None = None
    """First position that is kept, if events after the requested one were lost."""
    order: int = START
    """Order among others at the same position: where a subscription was made."""
    linger: float = 0.0
    """Default linger time in seconds."""
    hold: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Makes a context that lasts as long as the client listens."""
    ended: Callable[[], bool] = lambda: False
    """Whether no more messages will come, from any edge."""


@dataclass(frozen=True)
class Acceptor:
    """Opens connections and brings listeners to their topic."""

    topics: Sequence[LiveTopic[Any]]
    """All topics: the limit of listeners is one for all of them."""
    log: EdgeLog
    threads: ThreadPool
    metrics: Metrics
    buffer: int = CLIENT_BUFFER_BYTES
    limit: int = LISTENERS
    ack_timeout: float = ACK_SECONDS
    connections: HttpConnections = field(default_factory=HttpConnections)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __len__(self) -> int:
        """Return the number of listeners."""
        return max(len(self.connections), sum(map(len, self.topics)))

    def check_space(self) -> None:
        """Raises Unavailable when there are as many listeners as there may be. Call it before a response begins."""
        if len(self) >= self.limit:
            raise Unavailable(f"{self.limit} listeners are connected, which is the limit; try another edge, or later")

    async def head(self) -> int:
        """Return the newest position of the log."""
        return await self.threads.run(self.log.head)

    async def accept(self, request: web.Request, subject: Subscribable[Key]) -> web.StreamResponse:
        """Open an endless response for a listener, which outlives the request. Raises NotAcceptable or BadRequest."""
        options = parse_options(request, subject.linger)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(subject.hold())
            headers, lose = stream_headers(options), subject.topic.lose
            response, connection = await self.connections.take_over(request, headers, lose)
            self.start(connection, replace(options, chunked=is_chunked(response)), subject, stack.pop_all())
        return response

    def start(
        self, connection: ClientConnection, options: DeliveryOptions, subject: Subscribable[Key], held: AsyncExitStack
    ) -> None:
        """Make a listener of a connection and bring it to its topic; `held` is closed when it leaves."""
        listener = subject.topic.open(subject.key, connection, subject.after, self.metrics, self.buffer, options)
        greeting = render_greeting(options.format, format_position(subject.after), [subject])
        listener.greet(options.format.head + greeting)
        # A task that waits for the end would cost memory for each listener: only those that hold something have one.
        self.spawn(_listen(subject, listener, None if subject.hold is nullcontext else held))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as a task that is not garbage-collected before it is done."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _listen(subject: Subscribable[Key], listener: Listener, held: AsyncExitStack | None) -> None:
    try:
        await subject.topic.listen(subject.key, listener, subject.history)
    except Exception:
        # The response has begun, so that no problem document can be sent. The client reconnects to where it was.
        logger.exception("the history of %s failed", subject.name)
        listener.finish(NO_MESSAGE)
    if held is not None:
        async with held:
            await listener.wait_until_closed()


def render_greeting(format: MessageFormat, id: str, subjects: Sequence[Subscribable[Any]]) -> bytes:
    """Render the first message: the position after which a client is served, and whether events before it are lost."""
    missed = [(each.after, each.earliest) for each in subjects if each.earliest is not None]
    if not missed:
        return format.notice("position", position=id, missed=False)
    asked, earliest = missed[0]
    first = format.notice("position", position=id, missed=True, earliest=format_position(earliest))
    return first + gap_notice(format, asked, earliest)


def stream_headers(options: DeliveryOptions) -> dict[str, str]:
    """Return the headers of an endless response."""
    coding = {"Content-Encoding": options.encoding.name} if options.encoding.name else {}
    return {**_HEADERS, "Content-Type": options.format.media_type, **coding}
