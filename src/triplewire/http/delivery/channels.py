"""Channels: fan-out of the same bytes to all listeners with equal delivery options.

A message is rendered once for each format, and compressed and framed once for each channel. A channel holds messages
back for its linger time, and has three kinds of listeners:

    fresh       just entered; may have received some of the waiting messages, so each is checked  ── first flush ──▶
    newcomers   get each flush compressed alone                                                   ── next context ─▶
    members     get it compressed in the context that they share

A listener whose connection buffers more than its limit is told so and cut off, and can resume from the last position
that it got; no buffer grows beyond the limit plus one pass of messages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from triplewire.config.metrics import Metrics
from triplewire.http.delivery.connections import ClientConnection
from triplewire.http.delivery.options import IDENTITY, Compress, DeliveryOptions, LoopLoad
from triplewire.http.formats.messages import (
    ClosingMessage,
    EntryPieces,
    Frames,
    MessageFormat,
    join_frames,
    slow_message,
)
from triplewire.model import START

CLIENT_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""Bytes that may wait unsent for one client. A client with more is told that it is too slow and cut off."""

LINGER_BYTES: Final = 1024 * 1024
"""Bytes that linger in a channel at most: more are sent at once, and would compress no better."""

CONTEXT_SECONDS: Final = 5.0
"""Least time between two shared compression contexts where newcomers wait to join: a new one has to learn what the last
one knew, some 32 kB."""

CONTEXT_LISTENERS: Final = 4
"""Listeners of one channel from which on they share a context, of some 300 kB in all. For fewer each message is
compressed alone."""

_MEASURED_LISTENERS = 100
"""Listeners for which writing takes a millisecond, and is worth measuring."""

_DEFAULT_OPTIONS = DeliveryOptions()


class Listener:
    """A client in a live topic, with its cursor: everything up to it was written. While the listener is in a channel,
    the channel's position counts if it is higher."""

    __slots__ = ("_done", "_metrics", "_on_leave", "_parting", "closed", "connection", "cursor", "limit", "options")

    def __init__(
        self,
        connection: ClientConnection,
        cursor: int,
        metrics: Metrics,
        limit: int = CLIENT_BUFFER_BYTES,
        options: DeliveryOptions = _DEFAULT_OPTIONS,
        on_leave: Callable[[Listener], None] = lambda listener: None,
    ) -> None:
        """`on_leave` is called once, when nothing will be written any more."""
        self.connection = connection
        self.cursor = cursor
        self.options = options
        self.limit = limit
        self.closed = False
        """Nothing will be written any more."""
        self._on_leave = on_leave
        self._metrics = metrics
        self._parting = b""
        self._done: asyncio.Future[None] | None = None

    def greet(self, message: bytes) -> None:
        """Write the first message."""
        encoding = self.options.encoding
        self.connection.write(self.options.frame(encoding.head + encoding.alone(message)))

    async def replay(self, frames: Frames, position: int) -> None:
        """Write a step of history at the client's pace; with it everything up to `position` was written."""
        await self.connection.drained()
        fresh = frames.after(self.cursor)
        if fresh.positions:
            self.connection.write(self.options.encode_alone(fresh.joined))
        self.cursor = max(self.cursor, position)

    def write(self, message: bytes) -> None:
        """Write a message for this listener alone, while it is in no context."""
        if not self.closed:
            self.connection.write(self.options.encode_alone(message))

    def join_context(self, parting: bytes) -> None:
        """Enter a compression context, which the bytes `parting` leave."""
        self._parting = parting

    def finish(self, last: ClosingMessage) -> None:
        """Write the last message and close the connection."""
        if self.closed:
            return
        message = last.render(self.options.format, self.cursor)
        data = self._parting + self.options.encoding.alone(message) if message else b""
        self.connection.write(self.options.frame(data) + self.options.end)
        self.leave()
        self.connection.close()

    def cut_off(self) -> None:
        """Close the connection of a client that reads too slowly."""
        self._metrics.cut_off.inc()
        self.finish(slow_message(self.limit))

    def leave(self) -> None:
        if not self.closed:
            self.closed = True
            self._on_leave(self)
            if self._done is not None and not self._done.done():
                self._done.set_result(None)

    async def wait_until_closed(self) -> None:
        if not self.closed:
            self._done = asyncio.get_running_loop().create_future()
            await self._done


class CachedMessages:
    """Messages in order of position, which a function renders when a format is needed, once for each."""

    def __init__(self, render: Callable[[MessageFormat], Frames]) -> None:
        self._render = render
        self._rendered: dict[MessageFormat, Frames] = {}

    def frames(self, format: MessageFormat) -> Frames:
        frames = self._rendered.get(format)
        if frames is None:
            frames = self._rendered[format] = self._render(format)
        return frames


def render_events(pieces: EntryPieces, format: MessageFormat) -> Frames:
    """Render every entry of a table as a message of its stream."""
    positions = list(pieces.rows)
    return Frames(positions, [format.event(pieces, position) for position in positions])


WriteTarget = tuple[Callable[[bytes], object], Callable[[], int], int]
"""A listener as the inner loop needs it: its connection's `write` and `pending`, and its limit."""


class Channel:
    """Listeners with equal options. Messages up to `position` were written to them, or linger."""

    def __init__(
        self,
        options: DeliveryOptions,
        load: LoopLoad,
        clock: Callable[[], float] = time.monotonic,
        context_seconds: float = CONTEXT_SECONDS,
    ) -> None:
        self.options = options
        self.position: int = START
        self.wait = 0.0
        """Seconds for which the last messages linger, or lingered."""
        self.messages = self.plain_bytes = self.sent_bytes = self.dropped = 0
        self._load = load
        self._clock = clock
        self._context_seconds = context_seconds
        self._sent: int = START
        self._fresh: dict[Listener, WriteTarget] = {}
        self._newcomers: dict[Listener, WriteTarget] = {}
        self._members: dict[Listener, WriteTarget] = {}
        self._context: Compress | None = None
        self._context_began = 0.0
        self._lingering: list[Frames] = []
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._fresh) + len(self._newcomers) + len(self._members)

    def __iter__(self) -> Iterator[Listener]:
        for each in (self._fresh, self._newcomers, self._members):
            yield from tuple(each)

    def enter(self, listener: Listener) -> None:
        """Add a listener that has received everything up to its cursor."""
        self._fresh[listener] = (listener.connection.write, listener.connection.pending, listener.limit)

    def leave(self, listener: Listener) -> None:
        for each in (self._fresh, self._newcomers, self._members):
            each.pop(listener, None)
        if not self._members:
            self._context = None

    def push(self, messages: CachedMessages) -> int:
        """Take messages above the position, and write them now or when the linger time is over; return how many times
        they are written."""
        frames = messages.frames(self.options.format).after(self.position)
        if not frames.positions:
            return 0
        self.position = frames.positions[-1]
        self._lingering.append(frames)
        self._size += len(frames.joined)
        if self._timer is None or self._size > LINGER_BYTES:
            self._schedule()
        return len(frames.positions) * len(self)

    def flush(self) -> None:
        """Write the messages that linger."""
        self._stop_timer()
        if self._lingering:
            frames, self._lingering, self._size = join_frames(self._lingering), [], 0
            self._admit(frames)
            self._broadcast(frames.joined, len(frames.positions))
            self._sent = frames.positions[-1]

    def write(self, message: bytes) -> None:
        """Write a message without a position to all listeners."""
        self.flush()
        for listener in tuple(self._fresh):
            listener.write(message)
        self._broadcast(message, 0)

    def close(self, last: ClosingMessage) -> None:
        """Write the last message to all listeners and close their connections."""
        self.flush()
        for listener in self:
            listener.cursor = max(listener.cursor, self.position)
            listener.finish(last)

    def _schedule(self) -> None:
        self._stop_timer()
        self.wait = self._load.wait(self.options.linger)
        if self.wait <= 0 or self._size > LINGER_BYTES:
            self.flush()
        else:
            self._timer = asyncio.get_running_loop().call_later(self.wait, self.flush)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _admit(self, frames: Frames) -> None:
        """Make newcomers of fresh listeners; one that has received some of the frames gets the rest alone, this
        once."""
        for listener, target in tuple(self._fresh.items()):
            if listener.cursor < frames.positions[0]:
                self._newcomers[listener] = self._fresh.pop(listener)
            elif rest := frames.after(listener.cursor).parts:
                listener.cursor = frames.positions[-1]
                self._count(1, sum(map(len, rest)), len(rest))
                self._write({listener: target}, self.options.encode_alone(b"".join(rest)))

    def _broadcast(self, data: bytes, messages: int) -> None:
        if self._newcomers:
            self._begin_context()
        if self._members and self._context is not None:
            self._count(len(self._members), len(data), messages)
            self._write(self._members, self.options.frame(self._context(data)))
        if self._newcomers:
            self._count(len(self._newcomers), len(data), messages)
            self._write(self._newcomers, self.options.encode_alone(data))

    def _begin_context(self) -> None:
        """Begin a new context, with the newcomers in it, if it is time for one."""
        encoding = self.options.encoding
        now, compressed = self._clock(), encoding is not IDENTITY
        if compressed and len(self) < CONTEXT_LISTENERS:
            return
        if compressed and self._members and now - self._context_began < self._context_seconds:
            return
        if compressed or self._context is None:
            self._write(self._members, self.options.frame(encoding.parting) if self._members else b"")
            self._context, self._context_began = encoding.context(), now
        for listener in self._newcomers:
            listener.join_context(encoding.parting)
        self._members |= self._newcomers
        self._newcomers = {}

    def _count(self, listeners: int, size: int, messages: int) -> None:
        self.messages += messages * listeners
        self.plain_bytes += size * listeners

    def _write(self, listeners: Mapping[Listener, WriteTarget], data: bytes) -> None:
        if not data:
            return
        if len(listeners) >= _MEASURED_LISTENERS:
            self._load.begin_writing()
        slow = []
        for listener, (write, pending, limit) in listeners.items():
            if pending() > limit:
                slow.append(listener)
            else:
                write(data)
        self.sent_bytes += len(data) * (len(listeners) - len(slow))
        for listener in slow:
            self.dropped += 1
            listener.cursor = max(listener.cursor, self._sent)
            listener.cut_off()
