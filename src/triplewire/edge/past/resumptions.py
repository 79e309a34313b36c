"""Resumptions: after which position a listener wants to hear, as it says it and as it is found."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from triplewire.access import Sight
from triplewire.edge.past.backlogs import Backlog
from triplewire.edge.past.gaps import Gap
from triplewire.edge.workers import Workers
from triplewire.matching.event_history import EventHistory, find_position
from triplewire.matching.visibility import redact_entries
from triplewire.model import START, Subscription, parse_position
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest
from triplewire.model.subscriptions import Names
from triplewire.rdf import check_id
from triplewire.rdf.headers import parse_time

NOW = "now"

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
_PLUS = re.compile(r"(?<=:\d\d) (?=\d\d:?\d\d$)|(?<=\.\d) (?=\d\d:?\d\d$)")
"""Where a plus stood before a form was decoded that writes a space as a plus."""
_ACCEPTED = (
    "`now`, `earliest`, a position, which is 16 hexadecimal digits such as the `id` of a message, "
    "a time such as 2026-11-15T08:30:00Z, or the absolute IRI of an event"
)


@dataclass(frozen=True)
class Asked:
    """One of the three, or, where none is given, from now on."""

    text: str = NOW
    position: int | None = None
    moment: int | None = None
    """In microseconds since the epoch."""
    event: str | None = None

    @classmethod
    def parsed(cls, text: str) -> Asked:
        """Raises BadRequest for what is none of them, with what would be."""
        if text == NOW:
            return cls()
        try:
            if _MOMENT.fullmatch(text):
                return cls(text, moment=parse_time("after", _PLUS.sub("+", text)))
            return cls(text, event=check_id(text)) if ":" in text else cls(text, position=parse_position(text))
        except BadRequest:
            raise BadRequest(f"after must be {_ACCEPTED}, not {text!r}") from None


@dataclass(frozen=True)
class Start:
    """Where a listener begins."""

    after: int
    told: int = START
    """The position up to which it need not be told of what is lost: it knows, or did not ask for it."""
    gap: Gap | None = None
    """What it has missed."""
    unknown: bool = field(default=False, compare=False)
    """What it asked for is not known here, so that it is not known either what it has missed."""

    @property
    def earliest(self) -> int | None:
        """The first position of which it may hear, if it has missed something."""
        return None if self.gap is None else self.gap.earliest


class Resumptions:
    """Finds where listeners begin."""

    def __init__(self, backlog: Backlog, clock: Clock, workers: Workers, historians: Workers) -> None:
        """What takes long is done by `historians`."""
        self._backlog = backlog
        self._workers = workers
        self._historians = historians
        self._clock = clock
        self._chronicle = EventHistory(backlog.log, backlog.archive)
        self._since: Callable[[int], int] = lru_cache(maxsize=64)(self._sought)

    async def of_stream(self, asked: Asked | None, stream: str, sight: Sight | None = None) -> Start:
        """Who does not say from where is told from now on. An event that is out of sight is not found."""
        asked = asked or Asked()
        if asked.position == START:
            return Start(START, await self._workers.run(self._backlog.lost, stream))
        return await self._searching(asked).run(self._start, asked, stream, self._backlog.lost, sight)

    async def of_subscription(
        self, asked: Asked | None, subscription: Subscription, sight: Sight | None = None
    ) -> Start:
        """Who does not say from where is told all that is kept, and the past where the subscription asks for it."""
        start = await self.since(asked, subscription.floor, subscription.stream, sight)
        # The history of one that looks back tells of gaps itself.
        return start if subscription.begins is None or start.unknown else replace(start, gap=None)

    async def since(self, asked: Asked | None, floor: int, streams: Names, sight: Sight | None = None) -> Start:
        """Of what is told since a position, of events of some streams: who does not say from where is told all that is
        kept."""
        if asked is None:
            return Start(floor)
        found = await self._searching(asked).run(self._start, asked, streams, self._backlog.log_lost, sight)
        after = max(floor, found.after) if asked != Asked() else found.after
        missed = found.gap is not None and found.gap.last > after
        return Start(after, found.told, found.gap if missed or found.unknown else None, unknown=found.unknown)

    def _searching(self, asked: Asked) -> Workers:
        return self._workers if asked.moment is None and asked.event is None else self._historians

    def _start(self, asked: Asked, streams: Names, losses: Callable[[Names], int], sight: Sight | None) -> Start:
        lost, head = losses(streams), self._backlog.log.head()
        after = self._position(asked, streams, head, sight)
        if after is None:
            # It may have been here and be lost, or not be here yet: all that is kept may be what comes after it.
            return Start(START, lost, Gap(START + 1, lost), unknown=True)
        if after > head:
            # Of another broker, or of this one before it lost its disk: what was missed is not known.
            return Start(head, lost, Gap(START + 1, head), unknown=True)
        if isinstance(streams, str) and self._backlog.memories.covers(streams, after):
            # Should memory be emptied before it is read, that is to be told then.
            return Start(after, after)
        return Start(after, lost, Gap(after + 1, lost) if lost > after else None)

    def _position(self, asked: Asked, streams: Names, head: int, sight: Sight | None) -> int | None:
        """The position that is meant; None for an event that is not found."""
        if asked.position is not None:
            return asked.position
        if asked.moment is not None and asked.moment <= self._clock.now():
            return self._since(asked.moment)
        stream = streams if isinstance(streams, str) else None
        if asked.event is None:
            return head
        found = self._backlog.find(asked.event, stream)
        return None if found is None or not self._sees(sight, found) else found

    def _sees(self, sight: Sight | None, position: int) -> bool:
        return sight is None or redact_entries(self._chronicle.read(position - 1, position, 1), sight).num_rows > 0

    def _sought(self, moment: int) -> int:
        """Remembered, since what was taken in later is later: many may come with the same time."""
        return find_position(self._chronicle, moment, self._chronicle.head())
