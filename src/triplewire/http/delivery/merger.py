"""The merger of several streams and subscriptions into one ordered sequence, at the pace of one client.

A source cursor goes through history until it has reached its topic, and is then handed what the topic's other
clients
get. If that is not taken in time, the cursor drops it, leaves, and goes through history again: it buffers one step
at
most.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from triplewire.http.delivery.channels import LazyMessages
from triplewire.http.delivery.topics import ClosingMessage, HistoryFailed, Subscribable
from triplewire.http.formats.messages import Frames, MessageFormat, ResumeToken
from triplewire.http.openapi import operations
from triplewire.model import END, START, format_position

# Strands: what one reader fetches of one stream or subscription, to be told at the reader's own pace.
#
# A strand goes through history until it has reached the room's place, and is then handed what the room's others get.
# Where that is not taken in time the strand gives it up, leaves, and goes through history again: it holds one step at
# most.

Key = TypeVar("Key", bound=Hashable)


class CursorOwner(Protocol):
    """Who takes from a strand."""

    def ring(self) -> None:
        """There is something to take, or to fetch."""

    def settle(self) -> None:
        """A room has told everything up to its place."""

    def send_away(self, last: ClosingMessage) -> None:
        """Nothing more comes this way."""


class SourceCursor(Generic[Key]):
    """Everything at positions up to its cursor was fetched, and was taken or waits here."""

    def __init__(self, subject: Subscribable[Key], format: MessageFormat, owner: CursorOwner) -> None:
        self.subject = subject
        self.live = False
        """It is in the room; there is nothing to fetch."""
        self.last: ClosingMessage | None = None
        """What is said after all that waits here, when nothing more is to come."""
        self._cursor = self._taken = subject.after
        self._format = format
        self._owner = owner
        self._left = False
        self._waiting: deque[tuple[int, bytes]] = deque()

    @property
    def reached(self) -> int:
        """The position up to which everything was taken or waits here."""
        if self.last is not None:
            return END
        return max(self._cursor, self.subject.room.told) if self.live else self._cursor

    @property
    def waits(self) -> bool:
        """There is something to take."""
        return bool(self._waiting)

    async def fetch(self) -> None:
        """A step of history; enters the room when it has reached it."""
        history, room = self.subject.history, self.subject.room
        if self._cursor < max(room.place, history.least):
            try:
                frames, reached = await history.step(self._cursor, self._format)
            except HistoryFailed as over:
                return self._owner.send_away(over.last)
            self._keep(frames.after(self._cursor))
            self._cursor = max(self._cursor, reached)
        if not self._left and self._cursor >= max(room.place, history.least):
            self.live = True
            room.attach(self.subject.key, self, history)

    def push(self, telling: LazyMessages) -> int:
        """Called by the room, in order; how many messages it had not had."""
        fresh = telling.frames(self._format).after(self._cursor)
        if len(self._waiting) + len(fresh.positions) > operations.HISTORY_EVENTS:
            self._fall_back()
            return 0
        self._keep(fresh)
        self._cursor = max(self._cursor, *fresh.positions[-1:])
        return len(fresh.positions)

    def settle(self) -> None:
        """Called by the room when a pass is over."""
        if self._waiting:
            self._owner.ring()
        else:
            self._owner.settle()

    def finish(self, last: ClosingMessage) -> None:
        """Called by the room when nothing more comes by it."""
        if self.subject.ended():
            self.last = last
            self._owner.ring()
        else:
            self._owner.send_away(last)

    def send_away(self, last: ClosingMessage) -> None:
        """Called by the room when everybody is to go."""
        self._owner.send_away(last)

    def take(self, upto: int) -> Iterator[tuple[ResumeToken, bytes]]:
        """What waits here up to a position, in order."""
        self._taken = max(self._taken, min(upto, self._cursor))
        while self._waiting and self._waiting[0][0] <= upto:
            position, part = self._waiting.popleft()
            yield ResumeToken(position, self.subject.order), part

    def leave(self) -> None:
        """It is done with."""
        self._left = True
        self._step_out()

    def _step_out(self) -> None:
        if self.live:
            self.live = False
            self.subject.room.detach(self.subject.key, self)

    def _keep(self, frames: Frames) -> None:
        self._waiting.extend(zip(frames.positions, frames.parts, strict=True))

    def _fall_back(self) -> None:
        self._step_out()
        self._waiting.clear()
        self._cursor = self._taken
        self._owner.ring()


OrderedMessage = tuple[ResumeToken, bytes]


@dataclass(frozen=True)
class MergedBatch:
    """Messages in order, each with its mark, and the mark up to which they are all."""

    messages: Sequence[OrderedMessage]
    mark: ResumeToken
    ends: Sequence[ClosingMessage] = ()
    """What is said after them about those of which nothing more comes; they are read no more."""

    def __bool__(self) -> bool:
        return bool(self.messages or self.ends)


class Merger:
    """Everything up to `mark` was given out, and nothing beyond, but for what was added with a place of its own."""

    def __init__(self, mark: ResumeToken, format: MessageFormat, *, many: bool = False) -> None:
        self.mark = mark
        self.sent_away: ClosingMessage | None = None
        """The last message, where the reader is to go."""
        self.interrupted: Callable[[], None] = lambda: None
        """Called when it is sent away."""
        self._format = format.marked if many else format
        self._many = many
        self._strands: dict[str, SourceCursor[Any]] = {}
        self._late: set[str] = set()
        """Those that were added with a place before the mark and have not reached it."""
        self._bell = asyncio.Event()
        self._held = False
        """Something depends on how far the others get."""

    def __len__(self) -> int:
        return len(self._strands)

    def __contains__(self, name: str) -> bool:
        return name in self._strands

    @property
    def reached(self) -> int:
        """The position up to which everything was given out: beyond the mark, while nothing waits."""
        waits = any(each.waits for each in self._strands.values())
        at = min((each.reached for each in self._strands.values()), default=END)
        return self.mark.position if waits or at == END else max(at, self.mark.position)

    def id(self, mark: ResumeToken) -> str:
        """From where to resume after a message."""
        return str(mark) if self._many else format_position(mark.position)

    def add(self, subject: Subscribable[Any]) -> None:
        """From here on it is read too. Where it begins before the mark it catches up, out of order."""
        self._strands[subject.name] = SourceCursor(subject, self._format, self)
        if subject.after < self.mark.cursor:
            self._late.add(subject.name)
        self._bell.set()

    def drop(self, name: str) -> None:
        """It is read no more."""
        self._strands.pop(name).leave()
        self._late.discard(name)
        self._bell.set()

    def close(self) -> None:
        for name in [*self._strands]:
            self.drop(name)

    def ring(self) -> None:
        """There is something new."""
        self._bell.set()

    def settle(self) -> None:
        """Some room has told everything up to its place."""
        if self._held:
            self._bell.set()

    def send_away(self, last: ClosingMessage) -> None:
        self.sent_away = last
        self._bell.set()
        self.interrupted()

    async def next(self, seconds: float | None = None, least: int = START) -> MergedBatch:
        """What is next; waits until there is something, or the reader is sent away. After so many seconds that is
        nothing, but not before everything up to `least` was read. May be cancelled without loss."""
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        while True:
            self._bell.clear()
            batch = self.ready()
            if batch or self.sent_away is not None:
                return batch
            if behind := [each for each in self._strands.values() if not each.live and each.last is None]:
                await min(behind, key=lambda each: each.reached).fetch()
                continue
            wanting = self.mark.position < least
            self._held |= wanting
            try:
                async with asyncio.timeout_at(None if wanting else deadline):
                    await self._bell.wait()
            except TimeoutError:
                return batch

    def ready(self) -> MergedBatch:
        """What there is now."""
        messages = self._caught_up()
        timely = [each for name, each in self._strands.items() if name not in self._late]
        horizon = min((each.reached for each in timely), default=self.mark.position)
        found = (each for strand in timely for each in strand.take(horizon))
        messages += sorted(each for each in found if each[0] > self.mark)
        if horizon != END:
            self.mark = max(self.mark, ResumeToken(horizon))
        elif messages:
            self.mark = max(self.mark, ResumeToken(messages[-1][0].position))
        self._held = any(each.waits for each in timely)
        return MergedBatch(messages, self.mark, self._ended())

    def _caught_up(self) -> list[OrderedMessage]:
        """What those have who are late, up to the mark."""
        found: list[OrderedMessage] = []
        for name in tuple(self._late):
            strand = self._strands[name]
            found += strand.take(self.mark.position)
            if strand.reached >= self.mark.position:
                self._late.discard(name)
        return found

    def _ended(self) -> list[ClosingMessage]:
        ended = [(name, each.last) for name, each in self._strands.items() if each.last and not each.waits]
        for name, _ in ended:
            self.drop(name)
        return [last for _, last in ended if last is not None]
