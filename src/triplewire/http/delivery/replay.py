"""Replay of a stream from wherever its events are kept (lake, log, replay cache), the position to resume from, and
gaps.

A page is read from one tier and the next begins where it ended, so that entries may move between tiers meanwhile. What
retention removed after the requested position is reported as a gap before the next message; what was erased is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.http.delivery.channels import render_events
from triplewire.http.delivery.replay_cache import RecentEvents
from triplewire.http.formats.messages import NO_FRAMES, EntryPieces, Frames, MessageFormat, gap_notice
from triplewire.http.ports import EdgeLog, ThreadPool
from triplewire.matching.event_history import ColdTier, EventHistory, find_position
from triplewire.matching.visibility import redact_entries
from triplewire.model import ENTRIES, START, Subscription, parse_position
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest
from triplewire.model.subscriptions import Names
from triplewire.rdf import check_id
from triplewire.rdf.headers import parse_time
from triplewire.security import Visibility
from triplewire.storage.lake.entries import PAST_BYTES
from triplewire.storage.log.ports import MeasuredLog

# Gaps: what a client that resumes has missed, and will not hear of any more.


@dataclass(frozen=True)
class Gap:
    """Between these positions events are missing, at both ends included; at the last of them there was one."""

    first: int
    last: int

    @property
    def earliest(self) -> int:
        """The first position at which there may be something."""
        return self.last + 1


def find_lost_position(log: MeasuredLog, archive: ColdTier | None, streams: Names = None) -> int:
    """The newest position of an event of a stream, of some or of any, that neither the log has any more nor the
    archive; START where there is none. What was erased is not lost: nobody is to be told of it.

    Both let go of the oldest first, so that of a stream everything up to there is gone, as far as no clock jumped.
    """
    if isinstance(streams, tuple):
        return max((find_lost_position(log, archive, each) for each in streams), default=START)
    # The log first: what it lets go of meanwhile is in the archive when that is looked at.
    gone = log.gone(streams)
    if archive is None or gone == START or gone > archive.upto():
        return gone
    return min(gone, archive.floor(streams))


def find_gap(log: MeasuredLog, archive: ColdTier | None, after: int, streams: Names = None) -> Gap | None:
    """What is missing after a position; None where nothing is. Who asks for `earliest` asks for what is kept, so there
    is no gap."""
    last = find_lost_position(log, archive, streams)
    return Gap(after + 1, last) if START < after < last else None


# ```
# position   1 ─── lake ──▶┬─── log ───▶┬─── memory ───▶ live
#               the log     │ trimmed    │ what passes
#               let it go   │ up to here │ have read
# ```
#
# A page is read from one of them. The next begins where it ended, so that it does not matter what moves from one to
# the other in between.

_SYNTAX = "application/n-quads"
"""Of what the archive gives back, which does not know how it was written."""

_ATTEMPTS = 4
"""Readings of one page, while what it is read from is let go under it. Each time less is left that can be."""


@dataclass(frozen=True)
class HistoryPage:
    """Entries of one stream, as `ENTRIES`, and the position up to which they are all that there are. What is missing
    before them was lost since the listener was last told so."""

    entries: pa.Table
    reached: int
    gap: Gap | None = None


@dataclass(frozen=True)
class TieredHistory:
    """Memory, log and, if there is one, the archive behind it. Any thread may read."""

    log: EdgeLog
    archive: ColdTier | None = None
    memories: RecentEvents = field(default_factory=RecentEvents)
    size: int = PAST_BYTES
    """The bytes of text from which on a page of the log ends."""

    def lost(self, streams: Names) -> int:
        """The newest position of an event of these streams, or of any, that is kept nowhere."""
        return find_lost_position(self.log, self.archive, streams)

    def log_lost(self, streams: Names) -> int:
        """The newest that the log let go: of what was matched nothing is kept longer."""
        return find_lost_position(self.log, None, streams)

    def find(self, event: str, stream: str | None = None) -> int | None:
        """The newest position of the event with this id, in a stream or in any; None where it is not found, in bounded
        time."""
        found = None if stream is None else self.memories.find(stream, event)
        if found is None:
            found = self.log.find(event, stream)
        if found is None and self.archive is not None:
            found = self.archive.find(event, stream)
        return found

    def recent(self, stream: str, after: int, upto: int, limit: int) -> HistoryPage | None:
        """The first entries after a position, at most `limit`, where memory or the log has all of the stream from there
        on; else None. It takes some milliseconds."""
        remembered = self.memories.page(stream, after, upto, limit)
        if remembered is not None:
            return HistoryPage(*remembered)
        found = self._logged(stream, after, upto, limit)
        # Asked after the reading: what went meanwhile may be missing in it.
        return found if self.log.gone(stream) <= after else None

    def older(self, stream: str, after: int, upto: int, limit: int, told: int) -> HistoryPage:
        """The first entries after a position, wherever they are. `told` is the position up to which the listener knows
        what is lost. It may take a while."""
        page, known = HistoryPage(ENTRIES.empty_table(), after), after
        for _ in range(_ATTEMPTS):
            page = self._stored(stream, after, upto, limit)
            last = self.lost(stream)
            if last <= max(after, told) or last == known:
                break
            # What was lost while it was read may be in it, and what was lost before is not: once more, to tell of all.
            known = last
        first = max(after, told) + 1
        return HistoryPage(page.entries, page.reached, Gap(first, known)) if known >= first else page

    def _stored(self, stream: str, after: int, upto: int, limit: int) -> HistoryPage:
        # The log first: what it lets go of meanwhile is in the archive when that is looked at.
        logged = self._logged(stream, after, upto, limit)
        if self.archive is None or self.log.gone(stream) <= after:
            return logged
        end = min(upto, self.log.begin() - 1, self.archive.upto())
        if end <= after:
            return logged
        found, reached = self.archive.page(after, end, limit, stream=stream)
        return HistoryPage(_with_syntax(found), reached) if found.num_rows or reached < end else logged

    def _logged(self, stream: str, after: int, upto: int, limit: int) -> HistoryPage:
        enough = self.log.reach(after, upto, self.size)
        found = self.log.read(after, enough, limit)
        reached = enough if found.num_rows < limit else found["position"][-1].as_py()
        return HistoryPage(found.filter(pc.equal(found["stream"], stream)), reached)


def _with_syntax(recalled: pa.Table) -> pa.Table:
    """What the archive gives back, with the column that it does not have."""
    syntax = pa.array([_SYNTAX] * recalled.num_rows, pa.string())
    columns = {**{name: recalled[name] for name in recalled.column_names}, "syntax": syntax}
    return pa.table([columns[name] for name in ENTRIES.names], schema=ENTRIES)


# Histories: the past of one stream, step by step, for one listener.


class StreamHistory:
    """What is lost while it is read is told before what comes after it."""

    def __init__(
        self,
        stream: str,
        backlog: TieredHistory,
        workers: ThreadPool,
        historians: ThreadPool,
        place: Callable[[], int],
        limit: int,
        told: int,
    ) -> None:
        """`told` is the position up to which the listener knows what is lost."""
        self._stream = stream
        self._backlog = backlog
        self._workers = workers
        self._historians = historians
        self._place = place
        self._limit = limit
        self._told = told
        self._gap: tuple[Gap, int] | None = None
        """What is to be told before the next messages, and how far these reach."""
        self.watch: Callable[[], None] = lambda: None
        """Asked whether what was read may still be told; raises Over where it may not."""

    @property
    def least(self) -> int:
        return START

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        table, reached = await self.page(cursor)
        return await self.written(table, format), reached

    async def page(self, cursor: int) -> tuple[pa.Table, int]:
        """Its next events above the cursor, boundedly many, and the position up to which that is all of them."""
        asked = (self._stream, cursor, self._place(), self._limit)
        found = await self._workers.run(self._backlog.recent, *asked)
        if found is None:
            found = await self._historians.run(self._backlog.older, *asked, self._told)
        self.watch()
        if found.gap is not None:
            self._told = found.gap.last
            self._gap = (found.gap, found.reached)
        return found.entries, found.reached

    async def written(self, table: pa.Table, format: MessageFormat) -> Frames:
        """Events as messages."""
        found = await self._workers.run(render_events, EntryPieces(table), format) if table.num_rows else NO_FRAMES
        if self._gap is None:
            return found
        (missed, reached), self._gap = self._gap, None
        notice = gap_notice(format, missed.first - 1, missed.earliest)
        if not found.parts:
            return Frames([reached], [notice + format.reached(reached)])
        return Frames(found.positions, [notice + found.parts[0], *found.parts[1:]])


# Resumptions: after which position a listener wants to hear, as it says it and as it is found.

NOW = "now"

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
_PLUS = re.compile(r"(?<=:\d\d) (?=\d\d:?\d\d$)|(?<=\.\d) (?=\d\d:?\d\d$)")
"""Where a plus stood before a form was decoded that writes a space as a plus."""
_ACCEPTED = (
    "`now`, `earliest`, a position, which is 16 hexadecimal digits such as the `id` of a message, "
    "a time such as 2026-11-15T08:30:00Z, or the absolute IRI of an event"
)


@dataclass(frozen=True)
class ResumeRequest:
    """One of the three, or, where none is given, from now on."""

    text: str = NOW
    position: int | None = None
    moment: int | None = None
    """In microseconds since the epoch."""
    event: str | None = None

    @classmethod
    def parsed(cls, text: str) -> ResumeRequest:
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
class ResumePosition:
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


class ResumeResolver:
    """Finds where listeners begin."""

    def __init__(self, backlog: TieredHistory, clock: Clock, workers: ThreadPool, historians: ThreadPool) -> None:
        """What takes long is done by `historians`."""
        self._backlog = backlog
        self._workers = workers
        self._historians = historians
        self._clock = clock
        self._chronicle = EventHistory(backlog.log, backlog.archive)
        self._since: Callable[[int], int] = lru_cache(maxsize=64)(self._sought)

    async def of_stream(
        self, asked: ResumeRequest | None, stream: str, sight: Visibility | None = None
    ) -> ResumePosition:
        """Who does not say from where is told from now on. An event that is out of sight is not found."""
        asked = asked or ResumeRequest()
        if asked.position == START:
            return ResumePosition(START, await self._workers.run(self._backlog.lost, stream))
        return await self._searching(asked).run(self._start, asked, stream, self._backlog.lost, sight)

    async def of_subscription(
        self, asked: ResumeRequest | None, subscription: Subscription, sight: Visibility | None = None
    ) -> ResumePosition:
        """Who does not say from where is told all that is kept, and the past where the subscription asks for it."""
        start = await self.since(asked, subscription.floor, subscription.stream, sight)
        # The history of one that looks back tells of gaps itself.
        return start if subscription.begins is None or start.unknown else replace(start, gap=None)

    async def since(
        self, asked: ResumeRequest | None, floor: int, streams: Names, sight: Visibility | None = None
    ) -> ResumePosition:
        """Of what is told since a position, of events of some streams: who does not say from where is told all that is
        kept."""
        if asked is None:
            return ResumePosition(floor)
        found = await self._searching(asked).run(self._start, asked, streams, self._backlog.log_lost, sight)
        after = max(floor, found.after) if asked != ResumeRequest() else found.after
        missed = found.gap is not None and found.gap.last > after
        return ResumePosition(after, found.told, found.gap if missed or found.unknown else None, unknown=found.unknown)

    def _searching(self, asked: ResumeRequest) -> ThreadPool:
        return self._workers if asked.moment is None and asked.event is None else self._historians

    def _start(
        self, asked: ResumeRequest, streams: Names, losses: Callable[[Names], int], sight: Visibility | None
    ) -> ResumePosition:
        lost, head = losses(streams), self._backlog.log.head()
        after = self._position(asked, streams, head, sight)
        if after is None:
            # It may have been here and be lost, or not be here yet: all that is kept may be what comes after it.
            return ResumePosition(START, lost, Gap(START + 1, lost), unknown=True)
        if after > head:
            # Of another broker, or of this one before it lost its disk: what was missed is not known.
            return ResumePosition(head, lost, Gap(START + 1, head), unknown=True)
        if isinstance(streams, str) and self._backlog.memories.covers(streams, after):
            # Should memory be emptied before it is read, that is to be told then.
            return ResumePosition(after, after)
        return ResumePosition(after, lost, Gap(after + 1, lost) if lost > after else None)

    def _position(self, asked: ResumeRequest, streams: Names, head: int, sight: Visibility | None) -> int | None:
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

    def _sees(self, sight: Visibility | None, position: int) -> bool:
        return sight is None or redact_entries(self._chronicle.read(position - 1, position, 1), sight).num_rows > 0

    def _sought(self, moment: int) -> int:
        """Remembered, since what was taken in later is later: many may come with the same time."""
        return find_position(self._chronicle, moment, self._chronicle.head())
