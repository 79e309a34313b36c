"""Readers: clients who are told at their own pace, of one or of many streams and subscriptions, in one order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from triplewire.edge.formats import Format
from triplewire.edge.telling.marks import Mark
from triplewire.edge.telling.rooms import Last
from triplewire.edge.telling.strands import Strand
from triplewire.edge.telling.subjects import Subject
from triplewire.model import END, START, format_position

Message = tuple[Mark, bytes]


@dataclass(frozen=True)
class Batch:
    """Messages in order, each with its mark, and the mark up to which they are all."""

    messages: Sequence[Message]
    mark: Mark
    ends: Sequence[Last] = ()
    """What is said after them about those of which nothing more comes; they are read no more."""

    def __bool__(self) -> bool:
        return bool(self.messages or self.ends)


class Reader:
    """Everything up to `mark` was given out, and nothing beyond, but for what was added with a place of its own."""

    def __init__(self, mark: Mark, format: Format, *, many: bool = False) -> None:
        self.mark = mark
        self.sent_away: Last | None = None
        """The last message, where the reader is to go."""
        self.interrupted: Callable[[], None] = lambda: None
        """Called when it is sent away."""
        self._format = format.marked if many else format
        self._many = many
        self._strands: dict[str, Strand[Any]] = {}
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

    def id(self, mark: Mark) -> str:
        """From where to resume after a message."""
        return str(mark) if self._many else format_position(mark.position)

    def add(self, subject: Subject[Any]) -> None:
        """From here on it is read too. Where it begins before the mark it catches up, out of order."""
        self._strands[subject.name] = Strand(subject, self._format, self)
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

    def send_away(self, last: Last) -> None:
        self.sent_away = last
        self._bell.set()
        self.interrupted()

    async def next(self, seconds: float | None = None, least: int = START) -> Batch:
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

    def ready(self) -> Batch:
        """What there is now."""
        messages = self._caught_up()
        timely = [each for name, each in self._strands.items() if name not in self._late]
        horizon = min((each.reached for each in timely), default=self.mark.position)
        found = (each for strand in timely for each in strand.take(horizon))
        messages += sorted(each for each in found if each[0] > self.mark)
        if horizon != END:
            self.mark = max(self.mark, Mark(horizon))
        elif messages:
            self.mark = max(self.mark, Mark(messages[-1][0].position))
        self._held = any(each.waits for each in timely)
        return Batch(messages, self.mark, self._ended())

    def _caught_up(self) -> list[Message]:
        """What those have who are late, up to the mark."""
        found: list[Message] = []
        for name in tuple(self._late):
            strand = self._strands[name]
            found += strand.take(self.mark.position)
            if strand.reached >= self.mark.position:
                self._late.discard(name)
        return found

    def _ended(self) -> list[Last]:
        ended = [(name, each.last) for name, each in self._strands.items() if each.last and not each.waits]
        for name, _ in ended:
            self.drop(name)
        return [last for _, last in ended if last is not None]
