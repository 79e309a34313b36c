"""Every twin knows its streams by segment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import END, Erasure, ErasureScope, Event
from triplewire.storage.log.ports import LogRetention, Publication, Segment, SegmentLimits, StreamVolume, extend_volume
from triplewire.testing import TWIN_KINDS, Twin, open_twin, publication


@pytest.fixture(params=TWIN_KINDS)
def stores(request: pytest.FixtureRequest) -> Iterator[Twin]:
    """Three events are a segment, and two positions of others a gap."""
    with open_twin(request.param, segments=SegmentLimits(events=3, gap=2)) as made:
        yield made


def spans(segments: Sequence[Segment]) -> list[tuple[int, tuple[tuple[int, int], ...]]]:
    return [(segment.number, segment.ranges) for segment in segments]


def test_a_segment_is_full_with_its_last_event_and_the_next_begins_after_it(stores: Twin) -> None:
    stores.log.append([publication(1, 2)])
    volume = stores.log.volume("test")
    assert volume
    assert volume.open
    assert (volume.closed, volume.segments, volume.open.ranges, stores.log.segments("test", [0])) == (
        0,
        1,
        ((1, 2),),
        [],
    )
    stores.clock.advance(1)
    stores.log.append([publication(3, 4, 5, 6, 7)])
    volume = stores.log.volume("test")
    assert volume
    assert volume.open
    assert (volume.events, volume.closed, volume.open.ranges) == (7, 2, ((7, 7),))
    assert spans(stores.log.segments("test", [1, 0, 2, -1])) == [(0, ((1, 3),)), (1, ((4, 6),))]
    (segment,) = stores.log.segments("test", [0])
    assert (segment.until - segment.since, segment.events, volume.until - volume.since) == (1_000_000, 3, 1_000_000)


def test_a_stream_among_others_has_ranges(stores: Twin) -> None:
    stores.log.append([publication(1, stream="few"), publication(2, 3, 4, 5), publication(6, 7, stream="few")])
    (segment,) = stores.log.segments("few", [0])
    assert segment.ranges == ((1, 1), (6, 7))


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_large_events_fill_a_segment(kind: str) -> None:
    with open_twin(kind, segments=SegmentLimits(size=20)) as stores:
        stores.log.append([Publication("test", [Event(f"urn:{each}", "<urn:s>\t<urn:p>\t1") for each in range(3)])])
        assert spans(stores.log.segments("test", [0])) == [(0, ((1, 2),))]


def test_what_is_trimmed_or_erased_moves_no_end(stores: Twin) -> None:
    stores.log.append([publication(1, 2, 3, 4)])
    before = stores.log.segments("test", [0]), stores.log.volume("test")
    gone = stores.log.read(0, 1, 1)["event"][0].as_py()
    stores.log.erase(Erasure("e", ErasureScope.EVENT, gone, 9))
    stores.log.trim(LogRetention(size=0), END)
    assert (stores.log.segments("test", [0]), stores.log.volume("test")) == before


def test_streams_are_told_by_name_some_at_a_time(stores: Twin) -> None:
    assert stores.log.volumes() == []
    assert stores.log.volume("test") is None
    stores.log.append([publication(1, stream="b"), publication(2, stream="a"), publication(3, stream="c")])
    assert [each.stream for each in stores.log.volumes()] == ["a", "b", "c"]
    assert [each.stream for each in stores.log.volumes("a", 1)] == ["b"]


def test_a_segment_in_which_the_clock_went_back_is_known(stores: Twin) -> None:
    stores.log.append([publication(1, 2, 3, 4)])
    stores.clock.jump(-5_000_000)
    stores.log.append([publication(5)])
    stores.log.append([publication(6, 7, 8)])
    volume = stores.log.volume("test")
    assert volume
    assert (volume.unordered, volume.segments) == (1, 3)


@given(st.lists(st.lists(st.tuples(st.sampled_from([1, 2, 80]), st.sampled_from([1, 400])), max_size=7), max_size=12))
@settings(max_examples=60, deadline=None)
def test_segments_do_not_depend_on_what_came_together(groups: list[list[tuple[int, int]]]) -> None:
    """However events are grouped into publications, the segments are the same, and each event is in one."""
    arrivals, position = [], 0
    for gap, size in (each for group in groups for each in group):
        position += gap
        arrivals.append((position, size))
    whole, rest = StreamVolume("s"), list(arrivals)
    segments: list[Segment] = []
    limits = SegmentLimits(events=4, size=1_000)
    for group in groups:
        come, rest = rest[: len(group)], rest[len(group) :]
        whole, full = extend_volume(whole, come, 7, limits) if come else (whole, [])
        segments += full
    at_once, all_full = extend_volume(StreamVolume("s"), arrivals, 7, limits) if arrivals else (whole, [])
    assert (at_once, all_full) == (whole, segments)
    parts = [*segments, *([whole.open] if whole.open else [])]
    held = [[at for at, _ in arrivals if any(a <= at <= b for a, b in segment.ranges)] for segment in parts]
    assert [at for part in held for at in part] == [at for at, _ in arrivals]
    assert [len(part) for part in held] == [segment.events for segment in parts]
    assert all(a <= b for segment in parts for a, b in segment.ranges)
