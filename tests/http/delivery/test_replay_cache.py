"""Memories: what they give is what the log would give, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.http.delivery.replay_cache import REPLAY_CACHE_SECONDS, RecentEvents, ReplayCacheConfig
from triplewire.model import ENTRIES
from triplewire.model.clock import ManualClock
from triplewire.storage.log.appending import entries_table

STREAMS = ("a", "b", "c")
KB = 1024


def entries(*rows: tuple[int, str], text: str = "x", received: int = 0) -> pa.Table:
    return entries_table([[(at, stream, f"urn:{at}", text, None, None, 0, received, "", None) for at, stream in rows]])


def parts(found: pa.Table) -> dict[str, pa.Table]:
    return {each: found.filter(pc.equal(found["stream"], each)) for each in pc.unique(found["stream"]).to_pylist()}


def positions(page: tuple[pa.Table, int] | None) -> tuple[list[int], int] | None:
    return None if page is None else (page[0]["position"].to_pylist(), page[1])


def filled(memories: RecentEvents, count: int, size: int = 100, stream: str = "a", first: int = 1) -> None:
    """A pass for each event."""
    for at in range(first, first + count):
        passed = entries((at, stream), text="x" * size)
        memories.keep({stream: passed}, at - 1, at, memories.check_erasures(), [stream])


def test_what_passed_since_somebody_listened_is_given_in_pages() -> None:
    memories = RecentEvents()
    memories.keep({}, 0, 5, memories.check_erasures())
    memories.keep({"a": entries((6, "a"), (8, "a"))}, 5, 9, memories.check_erasures(), ["a"])
    memories.keep({}, 9, 12, memories.check_erasures(), ["a"])
    assert positions(memories.page("a", 5, 12, 10)) == ([6, 8], 12)
    assert positions(memories.page("a", 6, 12, 10)) == ([8], 12)
    assert positions(memories.page("a", 5, 12, 1)) == ([6], 6)
    assert positions(memories.page("a", 5, 7, 10)) == ([6], 7)
    assert positions(memories.page("a", 9, 12, 10)) == ([], 12)
    assert memories.page("a", 4, 12, 10) is None
    assert memories.page("a", 12, 20, 10) is None
    assert memories.page("b", 6, 12, 10) is None


def test_a_pass_that_was_left_out_makes_it_begin_anew() -> None:
    memories = RecentEvents()
    filled(memories, 3)
    memories.keep({"a": entries((9, "a"))}, 7, 9, memories.check_erasures(), ["a"])
    assert memories.page("a", 2, 9, 10) is None
    assert positions(memories.page("a", 7, 9, 10)) == ([9], 9)


def test_many_small_passes_become_few_tables() -> None:
    memories = RecentEvents()
    filled(memories, 100)
    assert positions(memories.page("a", 10, 100, 1_000)) == ([*range(11, 101)], 100)
    assert memories.size < 100 * KB


@pytest.mark.parametrize(
    ("recall", "kept"),
    [(ReplayCacheConfig(64 * KB), 3), (ReplayCacheConfig(sizes={"a": 40 * KB}), 2), (ReplayCacheConfig(), 20)],
)
def test_the_oldest_go_by_size(recall: ReplayCacheConfig, kept: int) -> None:
    memories = RecentEvents(recall)
    filled(memories, 20, size=16 * KB)
    assert memories.size <= recall.size_of("a")
    assert positions(memories.page("a", 20 - kept, 20, 100)) == ([*range(21 - kept, 21)], 20)
    assert kept == 20 or memories.page("a", 19 - kept, 20, 100) is None


def test_the_oldest_go_by_age() -> None:
    clock = ManualClock()
    memories = RecentEvents(ReplayCacheConfig(ages={"a": 10.0}), clock)
    for at in range(1, 31):
        passed = {each: entries((at, each), text="x" * 20 * KB, received=clock.now()) for each in ("a", "b")}
        memories.keep(passed, at - 1, at, memories.check_erasures(), ["a", "b"])
        clock.advance(1.0)
    assert memories.page("a", 18, 30, 100) is None
    assert positions(memories.page("a", 19, 30, 100)) == ([*range(20, 31)], 30)
    assert positions(memories.page("b", 0, 30, 100)) == ([*range(1, 31)], 30)


def test_what_is_not_to_be_remembered_is_not() -> None:
    memories = RecentEvents(ReplayCacheConfig(sizes={"a": 0}))
    filled(memories, 3)
    assert memories.page("a", 1, 3, 10) is None
    assert (memories.size, len(memories)) == (0, 0)


def test_the_stream_that_was_used_least_recently_gives_way() -> None:
    memories = RecentEvents(ReplayCacheConfig(100 * KB))
    both = {each: entries((1, each), text="x" * 40 * KB) for each in ("a", "b")}
    memories.keep(both, 0, 1, memories.check_erasures(), ["a", "b"])
    assert memories.page("a", 0, 1, 10) is not None
    memories.keep({"c": entries((2, "c"), text="x" * 40 * KB)}, 1, 2, memories.check_erasures(), ["c"])
    assert memories.page("b", 0, 2, 10) is None
    assert positions(memories.page("a", 0, 2, 10)) == ([1], 2)
    assert positions(memories.page("b", 1, 2, 10)) == ([], 2)


def test_a_stream_that_nobody_comes_back_to_is_forgotten() -> None:
    clock = ManualClock()
    memories = RecentEvents(clock=clock)
    filled(memories, 2)
    clock.advance(REPLAY_CACHE_SECONDS)
    memories.keep({}, 2, 3, memories.check_erasures())
    assert "a" in memories
    clock.advance(1.0)
    memories.keep({}, 3, 4, memories.check_erasures())
    assert "a" not in memories
    assert memories.size == 0


def test_an_event_is_found_by_its_id() -> None:
    memories = RecentEvents()
    filled(memories, 40)
    assert memories.find("a", "urn:7") == 7
    assert memories.find("b", "urn:7") is None
    assert memories.find("a", "urn:77") is None


@dataclass
class Asked:
    """Erasures as the registry knows of them: by the position at which they were last spoken of."""

    position: int = 0

    def __call__(self, after: int) -> int:
        return max(after, self.position)


def test_an_erasure_empties_it() -> None:
    asked = Asked()
    memories = RecentEvents(erased=asked)
    filled(memories, 3)
    asked.position = 4
    assert memories.page("a", 1, 3, 10) is None
    assert memories.size == 0


def test_what_was_read_before_an_erasure_was_asked_for_is_not_kept_after_it() -> None:
    """Somebody reads, and so learns of it, while a pass is under way."""
    asked = Asked()
    memories = RecentEvents(erased=asked)
    filled(memories, 3)
    mark = memories.check_erasures()
    asked.position = 5
    memories.page("a", 1, 3, 10)
    memories.keep({"a": entries((4, "a"))}, 3, 5, mark, ["a"])
    assert memories.page("a", 3, 5, 10) is None
    memories.keep({"a": entries((6, "a"))}, 5, 6, memories.check_erasures(), ["a"])
    assert positions(memories.page("a", 5, 6, 10)) == ([6], 6)


@dataclass
class Model:
    """A list of all entries: what memory gives must be what lies between two positions of it."""

    rows: list[tuple[int, str]] = field(default_factory=list)
    head: int = 0


steps = st.lists(
    st.tuples(
        st.lists(st.sampled_from((*STREAMS, "", "skip")), max_size=4),
        st.sets(st.sampled_from(STREAMS)),
        st.sampled_from(("", "", "", "erase", "leave out")),
        st.sampled_from((10, 5_000, 30_000)),
    ),
    max_size=12,
)


@given(steps, st.sampled_from((0, 40 * KB, 200 * KB)), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_whatever_happened_it_has_all_between_two_positions_or_nothing(
    passes: list[tuple[list[str], set[str], str, int]], size: int, limit: int
) -> None:
    asked, model = Asked(), Model()
    memories = RecentEvents(ReplayCacheConfig(size), ManualClock(), asked)
    for streams, listened, happens, length in passes:
        after, mark = model.head, memories.check_erasures()
        fresh = [(after + 1 + number, stream) for number, stream in enumerate(streams)]
        model.head += len(streams)
        model.rows += [row for row in fresh if row[1] in STREAMS]
        asked.position = model.head if happens == "erase" else asked.position
        if happens != "leave out":
            found = [row for row in fresh if row[1] in listened or row[1] in memories]
            passed = parts(entries(*found, text="x" * length)) if found else {}
            memories.keep(passed, after, model.head, mark, listened)
        assert memories.size <= size
        for stream in STREAMS:
            for start in range(model.head):
                page = memories.page(stream, start, model.head, limit)
                expected = [at for at, name in model.rows if name == stream and at > start]
                if page is not None:
                    assert page[0].schema == ENTRIES
                    assert start < page[1] <= model.head
                    assert page[0]["position"].to_pylist() == [at for at in expected if at <= page[1]]
                    assert page[0].num_rows <= limit
