"""Replay of a stream from wherever its events are kept (lake, log, replay cache), the position to resume from, and
gaps.

    position   1 ─── lake ──▶┬─── log ───▶┬─── replay cache ───▶ live
                  trimmed     │            │ entries that the live
                  from the log┘            └ source has read

A page is read from one tier and the next begins where it ended, so that entries may move between tiers meanwhile.
Events that retention removed after the requested position are reported as a gap before the next message; erased ones
are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
from aiohttp import web

from triplewire.http.delivery.channels import render_events
from triplewire.http.delivery.options import MOVED
from triplewire.http.delivery.replay_cache import RecentEvents
from triplewire.http.formats.messages import NO_FRAMES, EntryPieces, Frames, MessageFormat, gap_notice
from triplewire.http.ports import ThreadPool
from triplewire.matching.event_history import ColdTier, EventHistory, find_position
from triplewire.matching.visibility import redact_entries
from triplewire.model import ENTRIES, START, Subscription, parse_position
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest
from triplewire.model.subscriptions import Names
from triplewire.rdf import check_id
from triplewire.rdf.headers import parse_time
from triplewire.security import Visibility
from triplewire.storage.lake.entries import LAKE_PAGE_BYTES
from triplewire.storage.log.ports import EdgeLog, MeasuredLog

NOW = "now"

_LAKE_SYNTAX = "application/n-quads"
"""Syntax of entries from the lake, which does not keep the original one."""

_ATTEMPTS = 4
"""Attempts to read one page while retention removes entries from it; less is left to remove each time."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
_DECODED_PLUS = re.compile(r"(?<=:\d\d) (?=\d\d:?\d\d$)|(?<=\.\d) (?=\d\d:?\d\d$)")
"""A space in place of the plus of a time zone, which form decoding has replaced."""
_ACCEPTED = (
    "`now`, `earliest`, a position, which is 16 hexadecimal digits such as the `id` of a message, "
    "a time such as 2026-11-15T08:30:00Z, or the absolute IRI of an event"
)


@dataclass(frozen=True)
class Gap:
    """Positions between which events are missing, both included; at the last of them there was one."""

    first: int
    last: int

    @property
    def earliest(self) -> int:
        """First position at which there may be an event."""
        return self.last + 1


def find_lost_position(log: MeasuredLog, archive: ColdTier | None, streams: Names = None) -> int:
    """Return the newest position of an event of one stream, of some or of any that is neither in the log nor in the
    archive; START if there is none. Events that were erased do not count.

    Retention removes the oldest events first, so that all events of a stream up to there are gone, as far as no clock
    jumped.
    """
    if isinstance(streams, tuple):
        return max((find_lost_position(log, archive, each) for each in streams), default=START)
    # The log first: entries that are trimmed meanwhile are in the archive when that is asked.
    gone = log.floor(streams)
    if archive is None or gone == START or gone > archive.head():
        return gone
    return min(gone, archive.floor(streams))


def find_gap(log: MeasuredLog, archive: ColdTier | None, after: int, streams: Names = None) -> Gap | None:
    """Return the events that are missing after a position; None if there are none. A client that asks for `earliest`
    asks for what is kept, so there is no gap."""
    last = find_lost_position(log, archive, streams)
    return Gap(after + 1, last) if START < after < last else None


@dataclass(frozen=True)
class HistoryPage:
    """Entries of one stream, as `ENTRIES`, and the position up to which these are all. `gap` was lost before them,
    since the client was last told."""

    entries: pa.Table
    position: int
    gap: Gap | None = None


@dataclass(frozen=True)
class TieredHistory:
    """Replay cache, log and, if there is one, the archive behind it. Any thread may read."""

    log: EdgeLog
    archive: ColdTier | None = None
    recent_events: RecentEvents = field(default_factory=RecentEvents)
    size: int = LAKE_PAGE_BYTES
    """Bytes of text from which on a page of the log ends."""

    def lost(self, streams: Names) -> int:
        """Return the newest position of an event of these streams, or of any, that no tier has."""
        return find_lost_position(self.log, self.archive, streams)

    def lost_from_log(self, streams: Names) -> int:
        """Return the newest position that the log has lost: matches are not kept longer."""
        return find_lost_position(self.log, None, streams)

    def find(self, event: str, stream: str | None = None) -> int | None:
        """Return the newest position of the event with this id, in a stream or in any; None if it is not found within
        bounded time."""
        position = None if stream is None else self.recent_events.find(stream, event)
        if position is None:
            position = self.log.find(event, stream)
        if position is None and self.archive is not None:
            position = self.archive.find(event, stream)
        return position

    def read_recent(self, stream: str, after: int, end: int, limit: int) -> HistoryPage | None:
        """Read the first entries after a position, at most `limit`, if the cache or the log has all of the stream from
        there on; else return None. It takes some milliseconds."""
        cached = self.recent_events.page(stream, after, end, limit)
        if cached is not None:
            return HistoryPage(*cached)
        page = self._read_log(stream, after, end, limit)
        # Asked after the reading: entries that went meanwhile may be missing in it.
        return page if self.log.floor(stream) <= after else None

    def read(self, stream: str, after: int, end: int, limit: int, known_loss: int) -> HistoryPage:
        """Read the first entries after a position from any tier. `known_loss` is the position up to which the client
        knows what is lost. It may take a while."""
        page, lost = HistoryPage(ENTRIES.empty_table(), after), after
        for _ in range(_ATTEMPTS):
            page = self._read_tier(stream, after, end, limit)
            last = self.lost(stream)
            if last <= max(after, known_loss) or last == lost:
                break
            # Entries that were lost during the reading may be in the page, earlier ones are not: read again.
            lost = last
        first = max(after, known_loss) + 1
        return HistoryPage(page.entries, page.position, Gap(first, lost)) if lost >= first else page

    def _read_tier(self, stream: str, after: int, end: int, limit: int) -> HistoryPage:
        # The log first: entries that are trimmed meanwhile are in the archive when that is asked.
        logged = self._read_log(stream, after, end, limit)
        if self.archive is None or self.log.floor(stream) <= after:
            return logged
        archive_end = min(end, self.log.begin() - 1, self.archive.head())
        if archive_end <= after:
            return logged
        entries, position = self.archive.page(after, archive_end, limit, stream=stream)
        return HistoryPage(_with_syntax(entries), position) if entries.num_rows or position < archive_end else logged

    def _read_log(self, stream: str, after: int, end: int, limit: int) -> HistoryPage:
        page_end = self.log.page_end(after, end, self.size)
        entries = self.log.read(after, page_end, limit)
        position = page_end if entries.num_rows < limit else entries["position"][-1].as_py()
        return HistoryPage(entries.filter(pc.equal(entries["stream"], stream)), position)


def _with_syntax(entries: pa.Table) -> pa.Table:
    """Add the column that entries from the lake do not have."""
    syntax = pa.array([_LAKE_SYNTAX] * entries.num_rows, pa.string())
    columns = {**{name: entries[name] for name in entries.column_names}, "syntax": syntax}
    return pa.table([columns[name] for name in ENTRIES.names], schema=ENTRIES)


class StreamHistory:
    """The history of one stream for one client. Events that are lost meanwhile are reported before those after them."""

    def __init__(
        self,
        stream: str,
        history: TieredHistory,
        threads: tuple[ThreadPool, ThreadPool],
        position: Callable[[], int],
        limit: int,
        known_loss: int,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """`threads` read recent events, and older ones, which takes longer. `known_loss` is the position up to which
        the client knows what is lost. `check` raises HistoryFailed when the events may not be sent any more."""
        self._stream = stream
        self._history = history
        self._threads, self._history_threads = threads
        self._position = position
        self._limit = limit
        self._known_loss = known_loss
        self._check = check
        self._gap: tuple[Gap, int] | None = None
        """The gap to report before the next messages, and the position that these reach."""

    @property
    def floor(self) -> int:
        return START

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        table, position = await self.page(cursor)
        return await self.render(table, format), position

    async def page(self, cursor: int) -> tuple[pa.Table, int]:
        """Return the next events above the cursor, boundedly many, and the position up to which these are all."""
        span = (self._stream, cursor, self._position(), self._limit)
        page = await self._threads.run(self._history.read_recent, *span)
        if page is None:
            page = await self._history_threads.run(self._history.read, *span, self._known_loss)
        self._check()
        if page.gap is not None:
            self._known_loss = page.gap.last
            self._gap = (page.gap, page.position)
        return page.entries, page.position

    async def render(self, table: pa.Table, format: MessageFormat) -> Frames:
        """Render events, with the gap before them if there is one."""
        frames = await self._threads.run(render_events, EntryPieces(table), format) if table.num_rows else NO_FRAMES
        if self._gap is None:
            return frames
        (gap, position), self._gap = self._gap, None
        frames = frames if frames.parts else frames.with_position(position, format)
        return frames.with_prefix(gap_notice(format, gap.first - 1, gap.earliest))


@dataclass(frozen=True)
class ResumeRequest:
    """The point from which a client resumes: a position, a time or an event; now, if none is given."""

    text: str = NOW
    position: int | None = None
    time: int | None = None
    """Microseconds since the epoch."""
    event: str | None = None

    @classmethod
    def parsed(cls, text: str) -> ResumeRequest:
        """Raises BadRequest for a text that is none of them."""
        if text == NOW:
            return cls()
        try:
            if _TIME.fullmatch(text):
                return cls(text, time=parse_time("after", _DECODED_PLUS.sub("+", text)))
            return cls(text, event=check_id(text)) if ":" in text else cls(text, position=parse_position(text))
        except BadRequest:
            raise BadRequest(f"after must be {_ACCEPTED}, not {text!r}") from None


def resume_parameter(request: web.Request) -> str | None:
    """Return the point from which a client resumes, as it gives it. The Last-Event-ID of a client from another edge
    counts only if it is the id of an event: positions are those of the other edge."""
    last, after = request.headers.get("Last-Event-ID"), request.query.get("after")
    if MOVED in request.query and last is not None and ":" not in last:
        last = None
    return last or after


def parse_resumption(request: web.Request) -> ResumeRequest | None:
    """Return the point from which a client resumes; None if it gives none. Raises BadRequest."""
    text = resume_parameter(request)
    return None if text is None else ResumeRequest.parsed(text)


def parse_number(request: web.Request, name: str, default: float, most: float, least: float = 0) -> float:
    """Return a query parameter that is a number within bounds. Raises BadRequest."""
    text = request.query.get(name)
    try:
        number = default if text is None else float(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise BadRequest(f"{name} must be a number from {least:g} to {most:g}, not {text!r}")
    return number


@dataclass(frozen=True)
class ResumePosition:
    """The position after which a client is served."""

    after: int
    known_loss: int = START
    """Position up to which the client knows what is lost, or did not ask for it."""
    gap: Gap | None = None
    """Events that it asked for and that are lost."""
    unknown: bool = field(default=False, compare=False)
    """The requested point is not known here, so it is not known either which events are lost."""

    @property
    def earliest(self) -> int | None:
        """First position that is kept, if events are lost."""
        return None if self.gap is None else self.gap.earliest


class ResumeResolver:
    """Resolves resume requests to positions."""

    def __init__(self, history: TieredHistory, clock: Clock, threads: ThreadPool, history_threads: ThreadPool) -> None:
        """Searches by time and by event run in `history_threads`."""
        self._history = history
        self._threads = threads
        self._history_threads = history_threads
        self._clock = clock
        self._events = EventHistory(history.log, history.archive)
        # Later events have later times, so that a result stays right; many clients may resume from the same time.
        self._find_time: Callable[[int], int] = lru_cache(maxsize=64)(self._search_time)

    async def resolve_stream(
        self, asked: ResumeRequest | None, stream: str, visibility: Visibility | None = None
    ) -> ResumePosition:
        """Resolve for a stream: from now on, unless the client says otherwise. An event that is not visible is not
        found."""
        asked = asked or ResumeRequest()
        if asked.position == START:
            return ResumePosition(START, await self._threads.run(self._history.lost, stream))
        return await self._pool(asked).run(self._resolve, asked, stream, self._history.lost, visibility)

    async def resolve_subscription(
        self, asked: ResumeRequest | None, subscription: Subscription, visibility: Visibility | None = None
    ) -> ResumePosition:
        """Resolve for a subscription: everything that is kept, and the backfill if it asks for one, unless the client
        says otherwise."""
        start = await self.resolve_since(asked, subscription.floor, subscription.stream, visibility)
        # The history of a backfill reports gaps itself.
        return start if subscription.begins is None or start.unknown else replace(start, gap=None)

    async def resolve_since(
        self, asked: ResumeRequest | None, floor: int, streams: Names, visibility: Visibility | None = None
    ) -> ResumePosition:
        """Resolve for messages since a position, on events of some streams: everything that is kept, unless the client
        says otherwise."""
        if asked is None:
            return ResumePosition(floor)
        start = await self._pool(asked).run(self._resolve, asked, streams, self._history.lost_from_log, visibility)
        after = max(floor, start.after) if asked != ResumeRequest() else start.after
        missed = start.gap is not None and start.gap.last > after
        gap = start.gap if missed or start.unknown else None
        return ResumePosition(after, start.known_loss, gap, unknown=start.unknown)

    def _pool(self, asked: ResumeRequest) -> ThreadPool:
        return self._threads if asked.time is None and asked.event is None else self._history_threads

    def _resolve(
        self, asked: ResumeRequest, streams: Names, find_lost: Callable[[Names], int], visibility: Visibility | None
    ) -> ResumePosition:
        lost, head = find_lost(streams), self._history.log.head()
        after = self._find(asked, streams, head, visibility)
        if after is None:
            # The event may have been here and be lost, or not be here yet: all that is kept may come after it.
            return ResumePosition(START, lost, Gap(START + 1, lost), unknown=True)
        if after > head:
            # A position of another broker, or of this one before it lost its disk.
            return ResumePosition(head, lost, Gap(START + 1, head), unknown=True)
        if isinstance(streams, str) and self._history.recent_events.covers(streams, after):
            # Should the cache be emptied before it is read, the loss is to be reported then.
            return ResumePosition(after, after)
        return ResumePosition(after, lost, Gap(after + 1, lost) if lost > after else None)

    def _find(self, asked: ResumeRequest, streams: Names, head: int, visibility: Visibility | None) -> int | None:
        """Return the requested position; None for an event that is not found."""
        if asked.position is not None:
            return asked.position
        if asked.time is not None and asked.time <= self._clock.now():
            return self._find_time(asked.time)
        if asked.event is None:
            return head
        position = self._history.find(asked.event, streams if isinstance(streams, str) else None)
        return None if position is None or not self._is_visible(visibility, position) else position

    def _is_visible(self, visibility: Visibility | None, position: int) -> bool:
        if visibility is None:
            return True
        return bool(redact_entries(self._events.read(position - 1, position, 1), visibility).num_rows)

    def _search_time(self, time: int) -> int:
        return find_position(self._events, time, self._events.head())
