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
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from aiohttp import web

from triplewire.config.metrics import Metrics
from triplewire.http.delivery.channels import CLIENT_BUFFER_BYTES, Channel, LazyMessages, Listener
from triplewire.http.delivery.connections import ClientConnection, HttpConnections, is_chunked
from triplewire.http.delivery.options import DeliveryOptions, LoopLoad, parse_options
from triplewire.http.formats.messages import Frames, MessageFormat, failed_notice, gap_notice
from triplewire.http.ports import EdgeLog, ThreadPool
from triplewire.model import START, format_position
from triplewire.model.errors import Unavailable

LISTENERS: Final = 15_000
"""Open listening connections of one edge process: below the usual limit of open files."""

ACK_SECONDS: Final = 60.0
"""How long a client that acknowledges may stand still with all of that before it is told that it is too slow."""


# A room has a place in the order. Whoever is in the room was given everything up to there, or will be within the pass
# that is going on. A listener enters when its own cursor has reached the room's place; both are looked at and the
# listener is entered without giving way in between, hence there is no gap; each message is written only to listeners
# whose cursor is below it, hence there is no repeat.

Key = TypeVar("Key", bound=Hashable)


class ClientState(Protocol):
    """Whom a last message is for."""

    @property
    def cursor(self) -> int: ...

    @property
    def manner(self) -> DeliveryOptions: ...


ClosingMessage = Callable[[ClientState], bytes]
"""The last message of somebody."""


class HistoryFailed(Exception):
    """A history can tell no more. `detail` is what its listener is told at last."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def last(self, listener: ClientState) -> bytes:
        """How it is told."""
        return failed_notice(listener.manner.format, listener.cursor, self.detail)


class TopicHistory(Protocol):
    """The past of one listener's subject."""

    @property
    def least(self) -> int:
        """The position up to which the past reaches, wherever the room is: nobody enters who was not told so far."""

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        """The next messages above the cursor, boundedly many, and the position up to which that is all of them.

        While the room's place, or the least, is above the cursor, steps get there sooner or later. Raises Over.
        """


class TopicReader(Protocol):
    """Somebody who is given what others are written, to tell it at a pace of its own."""

    def push(self, telling: LazyMessages) -> int:
        """Messages, in order; how many of them it had not had."""

    def settle(self) -> None:
        """A pass is over."""

    def finish(self, last: ClosingMessage) -> None:
        """Nothing more comes of the key by this room."""

    def send_away(self, last: ClosingMessage) -> None:
        """Nothing more comes from this edge."""


class LiveTopic(Generic[Key]):
    """Listeners by what they listen to, those of one manner together."""

    def __init__(self, place: int = 0, load: LoopLoad | None = None) -> None:
        self.place = self.told = place
        """Of these the second follows when a pass is over: everything up to there was given to those who are here."""
        self.entered: Callable[[], None] = lambda: None
        """Called when somebody came in."""
        self.closed: Callable[[Key, Channel], None] = lambda key, channel: None
        """Called when the last listener of a channel is gone."""
        self._load = load or LoopLoad()
        self._live: dict[Key, dict[DeliveryOptions, Channel]] = {}
        self._all: dict[Listener, None] = {}
        self._attached: dict[Key, dict[TopicReader, None]] = {}

    def __len__(self) -> int:
        """How many are here or on their way through history."""
        return len(self._all) + sum(map(len, self._attached.values()))

    def __iter__(self) -> Iterator[Key]:
        """What is listened to live."""
        return iter({**self._live, **self._attached})

    def __contains__(self, key: Key) -> bool:
        """Whether somebody listens to it live."""
        return key in self._live or key in self._attached

    def channels(self, key: Key) -> Sequence[Channel]:
        """Of those who listen to a key; those that go before others come first."""
        return sorted(self._live.get(key, {}).values(), key=lambda each: not each.manner.priority)

    def at(self, key: Key) -> Sequence[Listener]:
        return [listener for channel in self.channels(key) for listener in channel]

    async def listen(self, key: Key, listener: Listener, history: TopicHistory) -> None:
        """Bring the listener through history into the room, where it stays until it is over."""
        self._all[listener] = None
        listener.left = partial(self._leave, key, listener)
        with suppress(ConnectionError), _closing_on_failure(listener):
            while not listener.over and listener.cursor < max(self.place, history.least):
                await listener.replay(*await history.step(listener.cursor, listener.manner.format))
        if listener.over:
            return
        self._channel(key, listener.manner).enter(listener)
        self.entered()

    def push(self, key: Key, telling: LazyMessages) -> int:
        """Give messages to all that listen to the key; how many times they are written."""
        written = sum(channel.push(telling) for channel in self.channels(key))
        return written + sum(each.push(telling) for each in tuple(self._attached.get(key, ())))

    def settle(self) -> None:
        """A pass is over: everything up to the place was given out."""
        self.told = self.place
        for each in self._everyone_attached():
            each.settle()

    def attach(self, key: Key, each: TopicReader, history: TopicHistory) -> None:
        """Somebody comes in who has had everything up to the place from history."""
        self._attached.setdefault(key, {})[each] = None
        self.entered()

    def detach(self, key: Key, each: TopicReader) -> None:
        here = self._attached.get(key, {})
        here.pop(each, None)
        if not here:
            self._attached.pop(key, None)

    def keep_open(self) -> None:
        """Write a comment to everybody."""
        for channel in self._channels():
            channel.tell(channel.manner.format.comment)

    def close(self, last: ClosingMessage) -> None:
        """Send everybody away."""
        for channel in self._channels():
            channel.close(last)
        for listener in tuple(self._all):
            listener.finish(last(listener))
        for each in self._everyone_attached():
            each.send_away(last)

    def finish(self, key: Key, last: ClosingMessage) -> None:
        for channel in self.channels(key):
            channel.close(last)
        for each in tuple(self._attached.get(key, ())):
            each.finish(last)

    def _everyone_attached(self) -> list[TopicReader]:
        return [each for here in self._attached.values() for each in here]

    def _channels(self) -> list[Channel]:
        return [channel for channels in self._live.values() for channel in channels.values()]

    def _channel(self, key: Key, manner: DeliveryOptions) -> Channel:
        channels = self._live.setdefault(key, {})
        found = channels.get(manner)
        if found is None:
            found = channels[manner] = Channel(manner, self._load)
        return found

    def _leave(self, key: Key, listener: Listener) -> None:
        self._all.pop(listener, None)
        channels = self._live.get(key, {})
        channel = channels.get(listener.manner)
        if channel is None:
            return
        channel.leave(listener)
        if not len(channel):
            channel.flush()
            del channels[listener.manner]
            self.closed(key, channel)
        if not channels:
            self._live.pop(key, None)


@contextmanager
def _closing_on_failure(listener: Listener) -> Iterator[None]:
    try:
        yield
    except HistoryFailed as over:
        listener.finish(over.last(listener))


# Subjects: what a client listens to, and from where on.


@dataclass(frozen=True)
class Subscribable(Generic[Key]):
    """A stream or a subscription."""

    name: str
    key: Key
    room: LiveTopic[Key]
    history: TopicHistory
    after: int
    earliest: int | None = None
    """What is kept, if something after that was missed."""
    order: int = START
    """Among others at the same position: where a subscription was made."""
    window: float = 0.0
    """How many seconds messages may wait, where a client does not say."""
    held: Callable[[], AbstractAsyncContextManager[None]] | None = None
    """Lasts as long as somebody listens."""
    ended: Callable[[], bool] = lambda: False
    """Whether nothing more comes of it, anywhere."""

    def holding(self) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self.held is None else self.held()


# The reception: how a request to listen becomes a listener in a room.

_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no", "Vary": "Accept, Accept-Encoding"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Acceptor:
    """Opens connections and leads listeners to their room."""

    rooms: Sequence[LiveTopic[Any]]
    """All that there are: seats are counted over all of them."""
    log: EdgeLog
    workers: ThreadPool
    metrics: Metrics
    buffer: int = CLIENT_BUFFER_BYTES
    most: int = LISTENERS
    patience: float = ACK_SECONDS
    """Seconds for which a client that sets the pace may stand still."""
    seats: HttpConnections = field(default_factory=HttpConnections)
    _attending: set[asyncio.Task[None]] = field(default_factory=set)

    def __len__(self) -> int:
        """How many listen."""
        return max(len(self.seats), sum(map(len, self.rooms)))

    def check_space(self) -> None:
        """Raises Unavailable when no more listeners are let in; asked before an answer begins."""
        if len(self) >= self.most:
            raise Unavailable(f"{self.most} listeners are here already; try another edge, or later")

    async def head(self) -> int:
        """Where `now` is."""
        return await self.workers.run(self.log.head)

    async def welcome(self, request: web.Request, subject: Subscribable[Key]) -> web.StreamResponse:
        """Let a listener in, which stays when the request is long over. Raises NotAcceptable or BadRequest."""
        manner = parse_options(request, subject.window)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(subject.holding())
            response, seat = await self.seats.take(request, stream_headers(manner))
            self.lead(seat, replace(manner, chunked=is_chunked(response)), subject, stack.pop_all())
        return response

    def lead(
        self, wire: ClientConnection, manner: DeliveryOptions, subject: Subscribable[Key], stays: AsyncExitStack
    ) -> None:
        """Make a listener of a connection and lead it to its room. What is held is let go when it leaves."""
        listener = Listener(wire, subject.after, self.metrics, self.buffer, manner)
        listener.greet(manner.format.head + render_greeting(manner.format, format_position(subject.after), [subject]))
        self.keep(_attend(subject, listener, None if subject.held is None else stays))

    def keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have something done for as long as it takes."""
        task = asyncio.create_task(work)
        self._attending.add(task)
        task.add_done_callback(self._attending.discard)
        return task


async def _attend(subject: Subscribable[Key], listener: Listener, stays: AsyncExitStack | None) -> None:
    try:
        await subject.room.listen(subject.key, listener, subject.history)
    except Exception:
        # The answer has begun: too late for a problem document. The client comes back to where it was.
        logger.exception("a history failed while somebody listened")
        listener.finish(b"")
    if stays is not None:
        async with stays:
            await listener.until_over()


def render_greeting(format: MessageFormat, id: str, subjects: Sequence[Subscribable[Any]]) -> bytes:
    """The first message: from where on a client is told, and whether anything before that was missed."""
    missed = [(each.after, each.earliest) for each in subjects if each.earliest is not None]
    if not missed:
        return format.notice("position", position=id, missed=False)
    asked, earliest = missed[0]
    first = format.notice("position", position=id, missed=True, earliest=format_position(earliest))
    return first + gap_notice(format, asked, earliest)


def stream_headers(manner: DeliveryOptions) -> dict[str, str]:
    """Of an answer without an end."""
    packed = {"Content-Encoding": manner.encoding.name} if manner.encoding.name else {}
    return {**_HEADERS, "Content-Type": manner.format.media_type, **packed}
