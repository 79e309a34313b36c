"""Channels: fan-out of the same bytes to all listeners with equal delivery options.

A message is rendered once for each format, compressed and framed once for each channel. A listener whose connection
holds more than its limit is told so and cut off, and can resume from the last position that it got; no buffer grows
beyond the limit plus one pass of messages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from triplewire.config.metrics import Metrics
from triplewire.http.delivery.connections import ClientConnection
from triplewire.http.delivery.options import IDENTITY, CompressionContext, DeliveryOptions, LoopLoad
from triplewire.http.formats.messages import EntryPieces, Frames, MessageFormat, join_frames, slow_notice
from triplewire.model import START

CLIENT_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""What may wait unsent for one listener. Above it the listener is told that it is too slow and cut off."""

WINDOW_BYTES: Final = 1024 * 1024
"""What waits in a window at most: more of it goes out at once, and packs no better."""

CONTEXT_SECONDS: Final = 5.0
"""Between two contexts of compression that listeners share, at least, where newcomers wait to join: a new one has to
learn what the last one knew, some 32 kB."""

CONTEXT_LISTENERS: Final = 4
"""Listeners of one channel from which on they share a context, of some 300 kB with what goes with it. For fewer each
message is packed by itself."""


# Listeners: one open connection each, with its place in the order and the one rule about falling behind.
#
# What a listener has not read yet waits in its connection's buffer. When that holds more than its limit the listener
# is told so with a last message and cut off; it can come back and resume from the last position that it got. So no
# buffer grows beyond the limit plus one pass of messages.


def _do_nothing() -> None:
    """Whom a listener leaves that has not come anywhere."""


class Listener:
    """Everything at positions up to `cursor` was written to it; of one that is in a channel, the channel knows more."""

    __slots__ = ("_done", "_limit", "_metrics", "_parting", "cursor", "left", "manner", "over", "wire")

    def __init__(
        self,
        wire: ClientConnection,
        cursor: int,
        metrics: Metrics,
        limit: int = CLIENT_BUFFER_BYTES,
        manner: DeliveryOptions = DeliveryOptions(),  # noqa: B008
    ) -> None:
        self.wire = wire
        self.cursor = cursor
        self.manner = manner
        self.over = False
        """Nothing will be written to it any more."""
        self.left: Callable[[], None] = _do_nothing
        """Called once, when it is over."""
        self._metrics = metrics
        self._limit = limit
        self._parting = b""
        self._done: asyncio.Future[None] | None = None
        wire.lost(self.leave)

    def greet(self, message: bytes) -> None:
        """Write the first message."""
        self.wire.write(self.manner.framed(self.manner.encoding.head + self.manner.encoding.alone(message)))

    async def replay(self, frames: Frames, reached: int) -> None:
        """Write a step of history at the listener's own pace; with it everything up to `reached` was written."""
        await self.wire.drained()
        fresh = frames.after(self.cursor)
        if fresh.positions:
            self.wire.write(self.manner.alone(fresh.joined))
        self.cursor = max(self.cursor, reached)

    def tell(self, message: bytes) -> None:
        """Write something for it alone while it is in no context."""
        if not self.over:
            self.wire.write(self.manner.alone(message))

    def share(self, parting: bytes) -> None:
        """It is in a context from now on; `parting` is how it gets out of it."""
        self._parting = parting

    def finish(self, message: bytes) -> None:
        """Write the last message and be done."""
        if self.over:
            return
        encoding = self.manner.encoding
        last = self._parting + encoding.alone(message) if message else b""
        self.wire.write(self.manner.framed(last) + self.manner.end)
        self.leave()
        self.wire.close()

    def cut_off(self) -> None:
        """It reads too slowly."""
        self._metrics.cut_off.inc()
        self.finish(slow_notice(self.manner.format, self.cursor, self._limit))

    def leave(self) -> None:
        """It is over: it was told so, or it is gone."""
        if not self.over:
            self.over = True
            self.left()
            if self._done is not None and not self._done.done():
                self._done.set_result(None)

    @property
    def behind(self) -> bool:
        """More waits for it than may."""
        return self.wire.waiting() > self._limit

    @property
    def limit(self) -> int:
        return self._limit

    async def until_over(self) -> None:
        if not self.over:
            self._done = asyncio.get_running_loop().create_future()
            await self._done


# Tellings: what a feed hands to a room, not yet written in any format.


class LazyMessages(Protocol):
    """Messages in order of position."""

    def frames(self, format: MessageFormat) -> Frames:
        """The messages in a format; made once for each."""


class CachedMessages:
    """A telling whose frames are written by a function, once for each format that is asked for."""

    def __init__(self, write: Callable[[MessageFormat], Frames]) -> None:
        self._write = write
        self._written: dict[MessageFormat, Frames] = {}

    def frames(self, format: MessageFormat) -> Frames:
        found = self._written.get(format)
        if found is None:
            found = self._written[format] = self._write(format)
        return found


def render_events(pieces: EntryPieces, format: MessageFormat) -> Frames:
    """Every entry of a table as a message of its stream."""
    positions = list(pieces.rows)
    return Frames(positions, [format.event(pieces, position) for position in positions])


# A message is written once for each format, packed and framed once for each channel, and the same bytes go to every
# member. What a channel is given waits for its window, if it has one. Three kinds of listeners are in it:
#
# ```
#  fresh       just came; may have had some of what is waiting, so it is looked at one by one   ── first flush ──▶
#  newcomers   get each flush packed alone                                                      ── next context ─▶
#  members     get it packed in the context that they share
# ```

WriteTarget = tuple[Callable[[bytes], object], Callable[[], int], int]
"""How to write to a listener, how many bytes wait for it, and how many may."""


_MEASURED_LISTENERS = 100
"""Listeners for which writing takes a millisecond, and is worth measuring."""


class Channel:
    """What it was given up to `place` was written to its listeners, or waits."""

    def __init__(self, manner: DeliveryOptions, load: LoopLoad, clock: Callable[[], float] = time.monotonic) -> None:
        self.manner = manner
        self.place: int = START
        self._sent: int = START
        self.wait = 0.0
        """Seconds that what came last waits, or waited."""
        self.messages = self.plain_bytes = self.sent_bytes = self.dropped = 0
        self._load = load
        self._clock = clock
        self._fresh: dict[Listener, WriteTarget] = {}
        self._newcomers: dict[Listener, WriteTarget] = {}
        self._members: dict[Listener, WriteTarget] = {}
        self._context: CompressionContext | None = None
        self._begun = 0.0
        self._waiting: list[Frames] = []
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._fresh) + len(self._newcomers) + len(self._members)

    def __iter__(self) -> Iterator[Listener]:
        for each in (self._fresh, self._newcomers, self._members):
            yield from tuple(each)

    def enter(self, listener: Listener) -> None:
        """Take in a listener, who has had everything up to its cursor."""
        self._fresh[listener] = (listener.wire.write, listener.wire.waiting, listener.limit)

    def leave(self, listener: Listener) -> None:
        for each in (self._fresh, self._newcomers, self._members):
            each.pop(listener, None)
        if not self._members:
            self._context = None

    def push(self, telling: LazyMessages) -> int:
        """Take in messages, those that it has not had, and write them now or at the end of the window; how many times
        they are written."""
        frames = telling.frames(self.manner.format).after(self.place)
        if not frames.positions:
            return 0
        self.place = frames.positions[-1]
        self._waiting.append(frames)
        self._size += len(frames.joined)
        if self._timer is None or self._size > WINDOW_BYTES:
            self._schedule()
        return len(frames.positions) * len(self)

    def flush(self) -> None:
        """Write what waits."""
        self._stop()
        if self._waiting:
            frames, self._waiting, self._size = join_frames(self._waiting), [], 0
            self._admit(frames)
            self._hand_out(frames.joined, len(frames.positions))
            self._sent = frames.positions[-1]

    def tell(self, message: bytes) -> None:
        """Write something that has no position, to all."""
        self.flush()
        for listener in tuple(self._fresh):
            listener.tell(message)
        self._hand_out(message, 0)

    def close(self, last: Callable[[Listener], bytes]) -> None:
        """Send everybody away, each with a last message."""
        self.flush()
        for listener in self:
            listener.cursor = max(listener.cursor, self.place)
            listener.finish(last(listener))

    def _schedule(self) -> None:
        self._stop()
        self.wait = self._load.wait(self.manner.window)
        if self.wait <= 0 or self._size > WINDOW_BYTES:
            self.flush()
        else:
            self._timer = asyncio.get_running_loop().call_later(self.wait, self.flush)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _admit(self, frames: Frames) -> None:
        """Those who came since the last flush: who has had some of this gets the rest of it by itself, this once."""
        for listener, write in tuple(self._fresh.items()):
            if listener.cursor < frames.positions[0]:
                self._newcomers[listener] = self._fresh.pop(listener)
            elif rest := frames.after(listener.cursor).parts:
                listener.cursor = frames.positions[-1]
                self._count(1, sum(map(len, rest)), len(rest))
                self._write({listener: write}, self.manner.alone(b"".join(rest)))

    def _hand_out(self, data: bytes, messages: int) -> None:
        if self._newcomers:
            self._join()
        if self._members and self._context is not None:
            self._count(len(self._members), len(data), messages)
            self._write(self._members, self.manner.framed(self._context.pack(data)))
        if self._newcomers:
            self._count(len(self._newcomers), len(data), messages)
            self._write(self._newcomers, self.manner.alone(data))

    def _join(self) -> None:
        """Begin a new context, with the newcomers in it, if it is time for one."""
        encoding = self.manner.encoding
        now, shared = self._clock(), encoding is not IDENTITY
        if shared and len(self) < CONTEXT_LISTENERS:
            return
        if shared and self._members and now - self._begun < CONTEXT_SECONDS:
            return
        if shared or self._context is None:
            self._write(self._members, self.manner.framed(encoding.parting) if self._members else b"")
            self._context, self._begun = encoding.context(), now
        for listener in self._newcomers:
            listener.share(encoding.parting)
        self._members |= self._newcomers
        self._newcomers = {}

    def _count(self, listeners: int, size: int, messages: int) -> None:
        self.messages += messages * listeners
        self.plain_bytes += size * listeners

    def _write(self, listeners: Mapping[Listener, WriteTarget], data: bytes) -> None:
        if not data:
            return
        if len(listeners) >= _MEASURED_LISTENERS:
            self._load.writing()
        slow = []
        for listener, (write, waiting, limit) in listeners.items():
            if waiting() > limit:
                slow.append(listener)
            else:
                write(data)
        self.sent_bytes += len(data) * (len(listeners) - len(slow))
        for listener in slow:
            self.dropped += 1
            listener.cursor = max(listener.cursor, self._sent)
            listener.cut_off()
