"""Channels: all listeners that get the same bytes.

A message is written once for each format, packed and framed once for each channel, and the same bytes go to every
member. What a channel is given waits for its window, if it has one. Three kinds of listeners are in it:

```
 fresh       just came; may have had some of what is waiting, so it is looked at one by one   ── first flush ──▶
 newcomers   get each flush packed alone                                                      ── next context ─▶
 members     get it packed in the context that they share
```
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping

from triplewire.config import limits
from triplewire.edge.telling.compressions import IDENTITY, Context
from triplewire.edge.telling.frames import Frames, together
from triplewire.edge.telling.listeners import Listener
from triplewire.edge.telling.manners import Manner
from triplewire.edge.telling.tellings import Telling
from triplewire.edge.telling.windows import Load
from triplewire.model import START

Write = tuple[Callable[[bytes], object], Callable[[], int], int]
"""How to write to a listener, how many bytes wait for it, and how many may."""


_MANY = 100
"""Listeners for which writing takes a millisecond, and is worth measuring."""


class Channel:
    """What it was given up to `place` was written to its listeners, or waits."""

    def __init__(self, manner: Manner, load: Load, clock: Callable[[], float] = time.monotonic) -> None:
        self.manner = manner
        self.place: int = START
        self._sent: int = START
        self.wait = 0.0
        """Seconds that what came last waits, or waited."""
        self.messages = self.plain_bytes = self.sent_bytes = self.dropped = 0
        self._load = load
        self._clock = clock
        self._fresh: dict[Listener, Write] = {}
        self._newcomers: dict[Listener, Write] = {}
        self._members: dict[Listener, Write] = {}
        self._context: Context | None = None
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

    def push(self, telling: Telling) -> int:
        """Take in messages, those that it has not had, and write them now or at the end of the window; how many times
        they are written."""
        frames = telling.frames(self.manner.format).after(self.place)
        if not frames.positions:
            return 0
        self.place = frames.positions[-1]
        self._waiting.append(frames)
        self._size += len(frames.joined)
        if self._timer is None or self._size > limits.WINDOW_BYTES:
            self._schedule()
        return len(frames.positions) * len(self)

    def flush(self) -> None:
        """Write what waits."""
        self._stop()
        if self._waiting:
            frames, self._waiting, self._size = together(self._waiting), [], 0
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
        if self.wait <= 0 or self._size > limits.WINDOW_BYTES:
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
        if shared and len(self) < limits.CONTEXT_LISTENERS:
            return
        if shared and self._members and now - self._begun < limits.CONTEXT_SECONDS:
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

    def _write(self, listeners: Mapping[Listener, Write], data: bytes) -> None:
        if not data:
            return
        if len(listeners) >= _MANY:
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
