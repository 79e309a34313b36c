"""Backlogs: every event of a stream once and in order from wherever it is, and what is lost told, to the position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.http.archives import MemoryArchive, undisturbed
from triplewire.http.delivery.replay import Gap, HistoryPage, TieredHistory
from triplewire.http.delivery.replay_cache import RecentEvents, ReplayCacheConfig
from triplewire.model import END, ENTRIES, Erasure, ErasureScope, Event, EventHeaders
from triplewire.model.clock import ManualClock
from triplewire.storage.log.ports import LogRetention, Publication
from triplewire.storage.memory import MemoryLog, PositionSequence
from triplewire.testing import TWIN_KINDS, event, open_twin, publication

STREAMS = ("a", "b")
Happening: TypeAlias = tuple[str, int]


class Disturbed(MemoryLog):
    """A log under which something happens right after it was read."""

    def __init__(self) -> None:
        super().__init__(PositionSequence(), ManualClock())
        self.after: Callable[[], None] = undisturbed

    def read(self, after: int, upto: int, limit: int) -> pa.Table:
        found = super().read(after, upto, limit)
        self.after()
        return found


@dataclass
class World:
    """A log, an archive and a memory; and, beside them, what is known of every event."""

    log: Disturbed
    archive: MemoryArchive
    memories: RecentEvents = field(init=False)
    streams: dict[int, str] = field(default_factory=dict)
    erased: set[int] = field(default_factory=set)
    marks: int = 0
    place: int = 0

    def __post_init__(self) -> None:
        self.recent_events = RecentEvents(
            ReplayCacheConfig(20 * 1024), ManualClock(), lambda after: max(after, self.marks)
        )

    @property
    def backlog(self) -> TieredHistory:
        return TieredHistory(self.log, self.archive, self.recent_events)

    def kept(self) -> set[int]:
        logged = MemoryLog.read(self.log, 0, END, 1_000)["position"].to_pylist()
        return {*logged, *self.archive.entries["position"].to_pylist()}

    def lost(self, stream: str) -> set[int]:
        gone = self.streams.keys() - self.kept() - self.erased
        return {at for at in gone if self.streams[at] == stream}

    def happen(self, what: str, number: int) -> None:
        getattr(self, what)(number)

    def publish(self, number: int) -> None:
        stream = STREAMS[number % 2]
        (taken,) = self.log.append([Publication(stream, [Event(f"urn:{number}", "<urn:s>\t<urn:p>\t<urn:o>")])])
        self.streams[taken[0]] = stream

    def store(self, number: int) -> None:
        head = self.log.head()
        self.archive.store(MemoryLog.read(self.log, self.archive.complete, head, 1_000), head)

    def trim(self, number: int) -> None:
        self.log.trim(LogRetention(size=0), before=min(number, self.archive.complete) + 1)

    def retain(self, number: int) -> None:
        self.archive.retain(number, STREAMS[: 1 + number % 2])

    def erase(self, number: int) -> None:
        erasure = Erasure("e", ErasureScope.EVENT, f"urn:{number}", END)
        before = self.kept()
        self.log.erase(erasure)
        self.archive.erase(erasure)
        self.erased |= before - self.kept()
        self.marks += 1

    def look(self, number: int) -> None:
        """A pass of the feed, for whom a number names."""
        mark, head = self.recent_events.check_erasures(), self.log.head()
        found = MemoryLog.read(self.log, self.place, head, 1_000)
        parts = {each: found.filter(pc.equal(found["stream"], each)) for each in STREAMS}
        if self.log.floor() <= self.place:
            self.recent_events.keep(parts, self.place, head, mark, STREAMS[: number % 3])
        self.place = head


@dataclass
class Reader:
    """A listener of a stream on its way through the past."""

    stream: str
    cursor: int
    told: int
    heard: list[int] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    def come_back(self, backlog: TieredHistory) -> None:
        """It was cut off; it is told at once what it has missed."""
        if backlog.recent_events.covers(self.stream, self.cursor):
            self.told = self.cursor
            return
        self.told = backlog.lost(self.stream)
        if self.told > self.cursor:
            self.gaps.append(Gap(self.cursor + 1, self.told))

    def step(self, backlog: TieredHistory, upto: int, limit: int) -> HistoryPage:
        page = backlog.read_recent(self.stream, self.cursor, upto, limit)
        page = page or backlog.read(self.stream, self.cursor, upto, limit, self.told)
        assert page.entries.schema == ENTRIES
        assert set(page.entries["stream"].to_pylist()) <= {self.stream}
        assert page.entries.num_rows <= limit
        if page.gap is not None:
            self.gaps.append(page.gap)
            self.told = page.gap.last
        self.heard += page.entries["position"].to_pylist()
        assert page.position > self.cursor
        self.cursor = page.position
        return page


CHANGES = ("publish", "publish", "store", "trim", "trim", "retain", "erase", "look")
numbers = st.integers(1, 12)
changes = st.tuples(st.sampled_from(CHANGES), numbers)
happenings = st.tuples(st.sampled_from((*CHANGES, *("read",) * 6, "cut", "cut")), numbers)


def check(at: World, reader: Reader, after: int) -> None:
    """Against what is known of every event."""
    mine = [each for each, stream in at.streams.items() if stream == reader.stream and each > after]
    assert reader.heard == sorted(set(reader.heard))
    assert set(reader.heard) <= set(mine)
    told = {each for gap in reader.gaps for each in range(gap.first, gap.last + 1)}
    missing = [each for each in mine if each not in reader.heard and each not in at.erased]
    assert [each for each in missing if each <= reader.cursor and each not in told] == []
    assert not told & set(reader.heard)
    assert all(gap.last in missing for gap in reader.gaps)


@given(
    st.lists(numbers, min_size=8, max_size=8),
    st.lists(changes, max_size=8),
    st.lists(happenings, max_size=10),
    st.lists(changes, max_size=4),
    st.tuples(st.integers(0, 8), st.sampled_from(STREAMS), st.integers(1, 3), st.integers(1, 4)),
)
@settings(max_examples=150, deadline=None)
def test_whatever_is_published_stored_trimmed_and_erased(
    published: Sequence[int],
    before: Sequence[Happening],
    history: Sequence[Happening],
    between: Sequence[Happening],
    listener: tuple[int, str, int, int],
) -> None:
    after, stream, limit, most = listener
    at, waiting = World(Disturbed(), MemoryArchive(most)), list(between)
    for each in [*(("publish", number) for number in published), ("store", 1), *before]:
        at.happen(*each)
    reader = Reader(stream, after, told=0)
    reader.come_back(at.backlog)

    def disturb() -> None:
        if waiting:
            at.happen(*waiting.pop())

    for what, number in [*history, *[("read", 1)] * 4]:
        if what == "cut":
            reader.come_back(at.backlog)
        elif what != "read":
            at.happen(what, number)
        elif reader.cursor < at.log.head():
            at.log.after = at.archive.before = disturb if number % 2 else undisturbed
            reader.step(at.backlog, at.log.head(), limit)
            at.log.after = at.archive.before = undisturbed
    while reader.cursor < at.log.head():
        reader.step(at.backlog, at.log.head(), limit)
    check(at, reader, after)


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_the_log_alone_has_what_it_was_told_and_the_archive_the_rest(kind: str) -> None:
    with open_twin(kind) as stores:
        headers = EventHeaders(syntax="text/turtle", extensions={"X-Y": "z"})
        stores.log.append([Publication("test", [Event(event(n).id, event(n).text, headers) for n in range(1, 7)])])
        archive = MemoryArchive()
        archive.store(stores.log.read(0, END, 3), 3)
        stores.log.trim(LogRetention(size=0), before=4)
        backlog = TieredHistory(stores.log, archive)
        assert backlog.read_recent("test", 2, 6, 10) is None
        old, new = backlog.read("test", 1, 6, 10, 0), backlog.read_recent("test", 3, 6, 10)
        assert new is not None
        assert [(row["position"], row["syntax"], row["extensions"]) for row in old.entries.to_pylist()] == [
            (2, "application/n-quads", '{"X-Y":"z"}'),
            (3, "application/n-quads", '{"X-Y":"z"}'),
        ]
        assert (old.position, old.gap) == (3, None)
        assert new.entries.to_pylist() == stores.log.read(3, 6, 10).to_pylist()
        assert (new.position, new.gap) == (6, None)


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_without_an_archive_what_is_trimmed_is_lost(kind: str) -> None:
    with open_twin(kind) as stores:
        stores.log.append([publication(1, stream="a"), publication(2, stream="b"), publication(3, stream="a")])
        stores.log.trim(LogRetention(size=0), before=3)
        backlog = TieredHistory(stores.log)
        assert [backlog.lost(each) for each in ("a", "b", "c", None)] == [1, 2, 0, 2]
        assert backlog.read("b", 0, 3, 10, 0).gap == Gap(1, 2)
        assert backlog.read("b", 0, 3, 10, 2).gap is None
        assert backlog.read_recent("c", 0, 3, 10) is not None


def test_an_archive_that_is_behind_the_log_has_lost_what_lies_between() -> None:
    with open_twin("memory") as stores:
        stores.log.append([publication(1, 2, 3, 4)])
        archive = MemoryArchive()
        archive.store(stores.log.read(0, 2, 10), 2)
        stores.log.trim(LogRetention(size=0), before=4)
        page = TieredHistory(stores.log, archive).read("test", 0, 4, 10, 0)
        assert (page.entries["position"].to_pylist(), page.gap) == ([1, 2], Gap(1, 3))


def test_what_is_lost_while_a_page_is_read_is_told_and_not_heard() -> None:
    log = Disturbed()
    log.append([publication(1, 2, 3, 4)])

    def trim() -> None:
        log.trim(LogRetention(size=0), before=4)

    log.after = trim
    page = TieredHistory(log).read("test", 0, 4, 10, 0)
    assert (page.entries["position"].to_pylist(), page.gap) == ([4], Gap(1, 3))
