"""Delivery at the pace of one client: the merger of several streams and subscriptions into one ordered sequence, flow
control by acknowledgements, and the writer of a connection.

A source cursor goes through history until it has reached its topic, and is then handed what the topic's other clients
get. If that is not taken in time, the cursor drops it, leaves, and goes through history again: it buffers one step at
most. Flow control bounds the messages, and their bytes, that are sent and not acknowledged. One message always goes,
however large.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from triplewire.config.metrics import Metrics
from triplewire.http.delivery.channels import CachedMessages
from triplewire.http.delivery.connections import ClientConnection
from triplewire.http.delivery.options import DeliveryOptions
from triplewire.http.delivery.topics import ACK_SECONDS, HistoryFailed, Subscribable
from triplewire.http.formats.messages import (
    NO_MESSAGE,
    ClosingMessage,
    Frames,
    MessageFormat,
    ResumeToken,
    slow_message,
)
from triplewire.http.openapi.operations import ACK_MESSAGES, HISTORY_EVENTS
from triplewire.model import END, START, format_position

COMMENT_SECONDS: Final = 15.0
"""Time between two comments that keep an idle connection open and detect clients that are gone."""

ACK_BYTES: Final = 1024 * 1024
"""Bytes that are sent and not acknowledged, beside the message that exceeds them: they are sent again at worst when a
client is cut off."""

logger = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)


class SourceCursor(Generic[Key]):
    """The messages of one subscribable for one client: everything up to the cursor was fetched, and was taken or
    waits here."""

    def __init__(
        self, subject: Subscribable[Key], format: MessageFormat, merger: Merger, limit: int = HISTORY_EVENTS
    ) -> None:
        self.subject = subject
        self.live = False
        """It is in the topic, so that there is nothing to fetch."""
        self.last: ClosingMessage | None = None
        """The message after all that wait here, when no more will come."""
        self._cursor = self._taken = subject.after
        self._format = format
        self._merger = merger
        self._limit = limit
        self._dropped = False
        self._waiting: deque[tuple[int, bytes]] = deque()

    @property
    def position(self) -> int:
        """Position up to which all messages were taken or wait here."""
        if self.last is not None:
            return END
        return max(self._cursor, self.subject.topic.settled) if self.live else self._cursor

    @property
    def waits(self) -> bool:
        """Whether there are messages to take."""
        return bool(self._waiting)

    async def fetch(self) -> None:
        """Take a step of history; enter the topic once it is reached."""
        history, topic = self.subject.history, self.subject.topic
        if self._cursor < max(topic.position, history.floor):
            try:
                frames, position = await history.step(self._cursor, self._format)
            except HistoryFailed as error:
                return self._merger.send_away(error.last)
            self._keep(frames.after(self._cursor))
            self._cursor = max(self._cursor, position)
        if not self._dropped and self._cursor >= max(topic.position, history.floor):
            self.live = True
            topic.attach(self.subject.key, self, history)

    def push(self, messages: CachedMessages) -> int:
        fresh = messages.frames(self._format).after(self._cursor)
        if len(self._waiting) + len(fresh.positions) > self._limit:
            self._fall_back()
            return 0
        self._keep(fresh)
        self._cursor = max(self._cursor, *fresh.positions[-1:])
        return len(fresh.positions)

    def settle(self) -> None:
        if self._waiting:
            self._merger.notify()
        else:
            self._merger.settle()

    def finish(self, last: ClosingMessage) -> None:
        if self.subject.ended():
            self.last = last
            self._merger.notify()
        else:
            self._merger.send_away(last)

    def send_away(self, last: ClosingMessage) -> None:
        self._merger.send_away(last)

    def take(self, end: int) -> Iterator[tuple[ResumeToken, bytes]]:
        """Yield the messages that wait here, in order, up to a position."""
        self._taken = max(self._taken, min(end, self._cursor))
        while self._waiting and self._waiting[0][0] <= end:
            position, part = self._waiting.popleft()
            yield ResumeToken(position, self.subject.order), part

    def drop(self) -> None:
        """Leave for good."""
        self._dropped = True
        self._leave_topic()

    def _leave_topic(self) -> None:
        if self.live:
            self.live = False
            self.subject.topic.detach(self.subject.key, self)

    def _keep(self, frames: Frames) -> None:
        self._waiting.extend(zip(frames.positions, frames.parts, strict=True))

    def _fall_back(self) -> None:
        self._leave_topic()
        self._waiting.clear()
        self._cursor = self._taken
        self._merger.notify()


OrderedMessage = tuple[ResumeToken, bytes]


@dataclass(frozen=True)
class MergedBatch:
    """Messages in order, and the token up to which these are all."""

    messages: Sequence[OrderedMessage]
    token: ResumeToken
    ends: Sequence[ClosingMessage] = ()
    """Messages after these about subscribables that have ended; they are dropped."""

    def __bool__(self) -> bool:
        return bool(self.messages or self.ends)


class Merger:
    """Everything up to `token` was given out, and nothing beyond, but for subscribables that were added later with a
    position before it: they catch up, out of order."""

    def __init__(
        self,
        token: ResumeToken,
        format: MessageFormat,
        *,
        many: bool = False,
        on_send_away: Callable[[], None] = lambda: None,
        limit: int = HISTORY_EVENTS,
    ) -> None:
        """`on_send_away` is called when the client is to go; `limit` bounds the messages that wait of each source."""
        self.token = token
        self.sent_away: ClosingMessage | None = None
        """The last message, once the client is to go."""
        self._format = format.with_tokens if many else format
        self._many = many
        self._on_send_away = on_send_away
        self._limit = limit
        self._cursors: dict[str, SourceCursor[Any]] = {}
        self._late: set[str] = set()
        """Names of those that were added with a position before the token and have not reached it."""
        self._changed = asyncio.Event()
        self._blocked = False
        """Whether messages wait for how far the other cursors get."""

    def __len__(self) -> int:
        return len(self._cursors)

    def __contains__(self, name: str) -> bool:
        return name in self._cursors

    @property
    def position(self) -> int:
        """Position up to which everything was given out: beyond the token, while no message waits."""
        waits = any(each.waits for each in self._cursors.values())
        least = min((each.position for each in self._cursors.values()), default=END)
        return self.token.position if waits or least == END else max(least, self.token.position)

    def id(self, token: ResumeToken) -> str:
        """Return the id of a message, from which a client resumes."""
        return str(token) if self._many else format_position(token.position)

    def add(self, subject: Subscribable[Any]) -> None:
        self._cursors[subject.name] = SourceCursor(subject, self._format, self, self._limit)
        if subject.after < self.token.cursor:
            self._late.add(subject.name)
        self._changed.set()

    def drop(self, name: str) -> None:
        self._cursors.pop(name).drop()
        self._late.discard(name)
        self._changed.set()

    def close(self) -> None:
        for name in [*self._cursors]:
            self.drop(name)

    def notify(self) -> None:
        """Notice that there is something to take, or to fetch."""
        self._changed.set()

    def settle(self) -> None:
        """Notice that a topic has delivered everything up to its position."""
        if self._blocked:
            self._changed.set()

    def send_away(self, last: ClosingMessage) -> None:
        """Notice that no more messages will come."""
        self.sent_away = last
        self._changed.set()
        self._on_send_away()

    async def next(self, seconds: float | None = None, least: int = START) -> MergedBatch:
        """Return the next messages; wait until there are some, or the client is sent away. After so many seconds
        return an empty batch, but not before everything up to `least` was read. May be cancelled without loss."""
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        while True:
            self._changed.clear()
            batch = self.ready()
            if batch or self.sent_away is not None:
                return batch
            if behind := [each for each in self._cursors.values() if not each.live and each.last is None]:
                await min(behind, key=lambda each: each.position).fetch()
                continue
            short = self.token.position < least
            self._blocked |= short
            try:
                async with asyncio.timeout_at(None if short else deadline):
                    await self._changed.wait()
            except TimeoutError:
                return batch

    def ready(self) -> MergedBatch:
        """Return the messages that can be given out now."""
        messages = self._take_late()
        timely = [each for name, each in self._cursors.items() if name not in self._late]
        horizon = min((each.position for each in timely), default=self.token.position)
        taken = (each for cursor in timely for each in cursor.take(horizon))
        messages += sorted(each for each in taken if each[0] > self.token)
        if horizon != END:
            self.token = max(self.token, ResumeToken(horizon))
        elif messages:
            self.token = max(self.token, ResumeToken(messages[-1][0].position))
        self._blocked = any(each.waits for each in timely)
        return MergedBatch(messages, self.token, self._drop_ended())

    def _take_late(self) -> list[OrderedMessage]:
        """Take the messages up to the token of those that catch up."""
        taken: list[OrderedMessage] = []
        for name in tuple(self._late):
            cursor = self._cursors[name]
            taken += cursor.take(self.token.position)
            if cursor.position >= self.token.position:
                self._late.discard(name)
        return taken

    def _drop_ended(self) -> list[ClosingMessage]:
        ended = [(name, each.last) for name, each in self._cursors.items() if each.last and not each.waits]
        for name, _ in ended:
            self.drop(name)
        return [last for _, last in ended if last is not None]


class FlowControl:
    """Messages that were sent and not acknowledged, in order. When they are too many, or too large together, no more is
    sent until some are acknowledged."""

    def __init__(self, begin: str, messages: int = ACK_MESSAGES, size: int = ACK_BYTES) -> None:
        self.acknowledged = begin
        """Id of the last message that was acknowledged, from which the client resumes."""
        self._messages = messages
        self._size = size
        self._waiting: OrderedDict[str, int] = OrderedDict()
        self._bytes = 0
        self._space = asyncio.Event()
        self._space.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def is_full(self) -> bool:
        return not self._space.is_set()

    def add(self, id: str, size: int) -> None:
        """Count a message that is sent. Call it only while it is not full."""
        self._waiting[id] = size
        self._bytes += size
        self._update()

    def acknowledge(self, id: str) -> bool:
        """Count a message, and all before it, as read; return whether it was waiting for that."""
        if id not in self._waiting:
            return False
        first = ""
        while first != id:
            first, size = self._waiting.popitem(last=False)
            self._bytes -= size
        self.acknowledged = id
        self._update()
        return True

    async def wait_for_space(self, seconds: float) -> None:
        """Wait until a message may be sent. Raises TimeoutError when that takes too long."""
        async with asyncio.timeout(seconds):
            await self._space.wait()

    def release(self) -> None:
        """Let no one wait for space any more."""
        self._messages, self._size = sys.maxsize, sys.maxsize
        self._update()

    def _update(self) -> None:
        if len(self._waiting) >= self._messages or self._bytes >= self._size:
            self._space.clear()
        else:
            self._space.set()


class MessageWriter:
    """Writes merged messages to one connection, as fast as the client reads, or acknowledges, them."""

    def __init__(
        self,
        merger: Merger,
        connection: ClientConnection,
        options: DeliveryOptions,
        metrics: Metrics,
        timeout: float = ACK_SECONDS,
        flow: FlowControl | None = None,
    ) -> None:
        """`timeout` is how long a client may read, or acknowledge, nothing."""
        self._merger = merger
        self._connection = connection
        self._options = options
        self._metrics = metrics
        self._timeout = timeout
        self._flow = flow
        self._context = options.encoding.context()
        self._written = merger.token
        """Token up to which everything was written."""

    def greet(self, message: bytes) -> None:
        """Write the first message."""
        self._connection.write(self._options.frame(self._options.encoding.head + self._context(message)))

    def write(self, message: bytes) -> None:
        if message:
            self._connection.write(self._options.frame(self._context(message)))

    async def run(self, *, stays: bool = False) -> None:
        """Write until the client is gone or sent away, or, unless it stays, nothing is left to read. A failure is
        logged, and the client reconnects."""
        try:
            await self._run(stays=stays)
        except ConnectionError:
            pass
        except Exception:
            # The response has begun, so that no problem document can be sent.
            logger.exception("a history failed")
            self._end(NO_MESSAGE)

    async def _run(self, *, stays: bool) -> None:
        try:
            while self._merger.sent_away is None:
                if not stays and not len(self._merger):
                    return self._end(NO_MESSAGE)
                await self._write_batch(await self._merger.next(COMMENT_SECONDS))
            self._end(self._merger.sent_away)
        except TimeoutError:
            self._metrics.cut_off.inc()
            self._end(self._slow_message())

    async def _write_batch(self, batch: MergedBatch) -> None:
        async with asyncio.timeout(self._timeout):
            await self._connection.drained()
        if self._flow is None:
            self.write(b"".join(part for _, part in batch.messages))
        elif not await self._write_paced(batch, self._flow):
            return
        self._written = batch.token
        for last in batch.ends:
            self.write(self._render(last))
        if not batch:
            self.write(self._options.format.comment)

    async def _write_paced(self, batch: MergedBatch, flow: FlowControl) -> bool:
        """Write as the client acknowledges; return whether all was written."""
        for token, part in batch.messages:
            if self._merger.sent_away is None:
                await flow.wait_for_space(self._timeout)
            if self._merger.sent_away is not None and token.position != self._written.position:
                # All messages of a position that was begun are written, so that the position is one to resume from.
                self._written = ResumeToken(self._written.position)
                return False
            if part:
                self.write(part)
                flow.add(self._merger.id(token), len(part))
            self._written = max(self._written, token)
        return True

    def _slow_message(self) -> ClosingMessage:
        slow = slow_message(self._timeout, "read, and acknowledge, faster")
        if self._flow is None:
            return slow
        return ClosingMessage(slow.name, {"position": self._flow.acknowledged, **slow.fields})

    def _render(self, last: ClosingMessage) -> bytes:
        return last.render(self._options.format, self._written.cursor)

    def _end(self, last: ClosingMessage) -> None:
        if self._connection.gone:
            return
        message, parting = self._render(last), self._options.encoding.parting
        data = self._context(message) + parting if message else parting
        self._connection.write(self._options.frame(data) + self._options.end)
        self._connection.close()
