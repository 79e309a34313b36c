"""What every twin of the outbox must do."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import MATCHES
from triplewire.model.errors import Conflict
from triplewire.storage.outbox import OutboxChunk, OutboxLane, OutboxPart
from triplewire.testing import TWIN_KINDS, Crash, Fault, FaultyOutbox, Twin, open_twin

FAST = OutboxLane.FAST


@pytest.fixture(params=TWIN_KINDS)
def stores(request: pytest.FixtureRequest) -> Iterator[Twin]:
    with open_twin(request.param) as made:
        yield made


def matches(*positions: int) -> pa.Table:
    """A match of subscription 7 at each position; every other one with solutions."""
    solutions = [[at, 0, 1] if at % 2 else None for at in positions]
    rows = zip(positions, solutions, strict=True)
    found = [{"position": at, "subscription": 7, "solutions": each} for at, each in rows]
    return pa.Table.from_pylist(found, schema=MATCHES)


def told(chunks: list[OutboxChunk]) -> list[int]:
    """The positions of all matches, in the order in which they are handed out."""
    return [at for chunk in chunks for at in chunk.matches.column("position").to_pylist()]


def test_an_outbox_starts_empty(stores: Twin) -> None:
    outbox = stores.outbox("run")
    assert (outbox.head(), outbox.read(0, 10), outbox.trim(100)) == (0, [], 0)


def test_a_batch_is_one_chunk_and_comes_back_as_it_was(stores: Twin) -> None:
    outbox = stores.outbox("run")
    outbox.write(0, 5, matches(1, 2, 2, 5))
    (chunk,) = outbox.read(0, 10)
    assert chunk.position == outbox.head() == 5
    assert chunk.matches.equals(matches(1, 2, 2, 5))
    assert chunk.matches.schema == MATCHES


def test_a_batch_of_many_matches_is_several_chunks_with_all_of_a_position_in_one(stores: Twin) -> None:
    many = matches(5, 2, 2, 7, 2, 5, 3, 7)
    outbox = stores.outbox("run", chunk_bytes=many.nbytes // 3)
    outbox.write(0, 9, many)
    chunks = outbox.read(0, 10)
    assert [(each.position, each.matches["position"].to_pylist()) for each in chunks] == [
        (2, [2, 2, 2]),
        (5, [3, 5, 5]),
        (9, [7, 7]),
    ]
    assert (outbox.head(), told(outbox.read(2, 10))) == (9, [3, 5, 5, 7, 7])


def test_chunks_are_read_in_order_after_a_sequence_number(stores: Twin) -> None:
    outbox = stores.outbox("run")
    for batch, at in enumerate((10, 20, 30)):
        outbox.write(batch, at, matches(at))
    first, second = outbox.read(0, 2)
    assert told([first, second]) == [10, 20]
    assert told(outbox.read(second.position, 2)) == [30]
    assert outbox.read(30, 2) == []


def test_a_batch_without_matches_moves_the_head_and_leaves_no_chunk(stores: Twin) -> None:
    outbox = stores.outbox("run")
    outbox.write(0, 8, matches())
    assert (outbox.head(), outbox.read(0, 10)) == (8, [])


def test_a_batch_that_is_replayed_is_left_as_it_is(stores: Twin) -> None:
    outbox = stores.outbox("run")
    outbox.write(0, 5, matches(3))
    outbox.write(0, 5, matches(3))
    outbox.write(0, 9, matches(8))
    assert (told(outbox.read(0, 10)), outbox.head()) == ([3], 5)


def test_a_new_run_counts_batches_anew_and_repeats_no_match(stores: Twin) -> None:
    """A lost checkpoint: the pipeline begins again at the start, with batches cut elsewhere."""
    stores.outbox("old").write(0, 5, matches(1, 4))
    fresh = stores.outbox("fresh")
    fresh.write(0, 3, matches(1))
    fresh.write(1, 7, matches(4, 6))
    assert told(fresh.read(0, 10)) == [1, 4, 6]
    assert [chunk.position for chunk in fresh.read(0, 10)] == [5, 7]
    assert fresh.head() == 7


def test_the_head_never_goes_back(stores: Twin) -> None:
    stores.outbox("old").write(0, 5, matches())
    stores.outbox("fresh").write(0, 2, matches(1))
    assert stores.outbox("").head() == 5


def test_trim_drops_chunks_that_end_below_a_position_and_keeps_the_head(stores: Twin) -> None:
    outbox = stores.outbox("run")
    for batch, at in enumerate((10, 20, 30)):
        outbox.write(batch, at, matches(at))
    assert outbox.trim(20) == 1
    assert told(outbox.read(0, 10)) == [20, 30]
    assert outbox.trim(100) == 2
    assert outbox.head() == 30
    outbox.write(2, 30, matches(30))
    assert outbox.read(0, 10) == []


def test_lanes_have_heads_chunks_and_batches_of_their_own(stores: Twin) -> None:
    outbox = stores.outbox("run")
    outbox.write(0, 9, matches(8))
    outbox.write(0, 5, matches(2, 4), OutboxLane.SLOW)
    outbox.write(1, 5, matches(4), OutboxLane.SLOW)
    assert [outbox.head(lane) for lane in OutboxLane] == [9, 5, 0]
    assert [told(outbox.read(0, 10, lane)) for lane in OutboxLane] == [[8], [2, 4], []]
    outbox.write(0, 9, matches(8), OutboxLane.CONTINUOUS)
    assert told(outbox.read(0, 10, OutboxLane.CONTINUOUS)) == [8]


def test_small_chunks_are_merged_below_a_position_and_nothing_is_lost(stores: Twin) -> None:
    outbox = stores.outbox("run")
    for number in range(1, 9):
        outbox.write(number, 10 * number, matches(10 * number - 1, 10 * number))
    assert outbox.merge(before=61) == 5
    assert [chunk.position for chunk in outbox.read(0, 10)] == [60, 70, 80]
    assert told(outbox.read(0, 10)) == [at for number in range(1, 9) for at in (10 * number - 1, 10 * number)]
    assert told(outbox.read(25, 1))[-1] == 60, "who was in the middle reads it again"
    assert (outbox.merge(before=61), outbox.merge(before=1_000), outbox.head()) == (0, 2, 80)
    assert outbox.erase([19, 80]) == 2
    assert told(outbox.read(0, 10))[:3] == [9, 10, 20]


def test_large_chunks_are_not_merged(stores: Twin) -> None:
    outbox = stores.outbox("run")
    for number in range(1, 4):
        outbox.write(number, number, pa.concat_tables([matches(number)] * 4_000))
    assert (outbox.merge(before=9), len(outbox.read(0, 10))) == (0, 3)


def test_trim_and_erase_concern_all_lanes(stores: Twin) -> None:
    outbox = stores.outbox("run")
    for lane in OutboxLane:
        outbox.write(0, 5, matches(5), lane)
        outbox.write(1, 9, matches(8, 9), lane)
    assert outbox.trim(6) == 3
    assert outbox.erase([9]) == 3
    assert [told(outbox.read(0, 10, lane)) for lane in OutboxLane] == [[8]] * 3
    assert [outbox.head(lane) for lane in OutboxLane] == [9] * 3


@given(
    count=st.integers(1, 4),
    block=st.integers(1, 5),
    bounds=st.tuples(st.integers(0, 40), st.integers(0, 40)).map(sorted),
)
def test_every_position_belongs_to_one_part(count: int, block: int, bounds: list[int]) -> None:
    after, through = bounds
    parts = [OutboxPart(FAST, 1, number, count, block) for number in range(count)]
    owned = [{at for a, b in part.ranges(after, through) for at in range(a + 1, b + 1)} for part in parts]
    assert sorted(at for each in owned for at in each) == [*range(after + 1, through + 1)]
    for part, own in zip(parts, owned, strict=True):
        assert own == {at for at in range(after + 1, through + 1) if (at - 1) // block % count == part.number}
        assert part.reach(after) == min(own, default=max(through, part.reach(after)) + 1) - 1


def test_edges_read_up_to_the_least_head_of_the_parts(stores: Twin) -> None:
    outbox = stores.outbox("")
    one, two = outbox.divide(FAST, 2, block=10)
    assert outbox.write_part(two, 10, 40, matches(12, 20, 31)) == (50, 0)
    assert (outbox.head(), outbox.read(0, 10)) == (0, [])
    assert outbox.write_part(one, 0, 5, matches(3)) == (5, 5)
    assert (outbox.head(), told(outbox.read(0, 10))) == (5, [3])
    assert outbox.write_part(one, 5, 24, matches(9, 22)) == (24, 24)
    assert [(each.position, told([each])) for each in outbox.read(3, 10)] == [
        (5, [3]),
        (10, [9]),
        (20, [12, 20]),
        (24, [22]),
    ]
    outbox.write_part(one, 24, 40, matches())
    assert (outbox.head(), told(outbox.read(24, 10))) == (40, [31])


def test_a_part_with_nothing_to_do_does_not_hold_the_head_back(stores: Twin) -> None:
    outbox = stores.outbox("")
    outbox.write(0, 12, matches(11))
    parts = outbox.divide(FAST, 3, block=10)
    assert [outbox.progress(each) for each in parts] == [(30, 12), (12, 12), (20, 12)]
    outbox.write_part(parts[1], 12, 17, matches(14))
    assert (outbox.head(), told(outbox.read(12, 10))) == (17, [14])


def test_a_lane_without_a_head_is_divided_from_a_position_on(stores: Twin) -> None:
    outbox = stores.outbox("")
    parts = outbox.divide(OutboxLane.SLOW, 2, 17, block=10)
    assert [outbox.progress(each) for each in parts] == [(20, 17), (17, 17)]
    outbox.write_part(parts[1], 17, 19, matches(18))
    assert (outbox.head(OutboxLane.SLOW), outbox.head()) == (19, 0)
    (part,) = outbox.divide(OutboxLane.SLOW, 1, 17)
    assert outbox.progress(part) == (19, 19)


def test_a_lane_that_is_divided_anew_drops_what_nobody_has_read_and_refuses_the_old_parts(stores: Twin) -> None:
    outbox = stores.outbox("")
    one, two = outbox.divide(FAST, 2, block=10)
    outbox.write_part(one, 0, 7, matches(4))
    outbox.write_part(two, 10, 40, matches(12, 31))
    again = outbox.divide(FAST, 2, block=10)
    assert [outbox.progress(each).head for each in again] == [7, 10]
    (whole,) = outbox.divide(FAST, 1)
    for old in (one, two, *again):
        with pytest.raises(Conflict):
            outbox.write_part(old, 7, 10, matches(8))
        with pytest.raises(Conflict):
            outbox.progress(old)
    outbox.write_part(whole, 7, 40, matches(8, 12, 31))
    assert told(outbox.read(0, 10)) == [4, 8, 12, 31]


def test_the_first_write_of_a_part_wins(stores: Twin) -> None:
    """Two tasks that have the same part cut it differently; each goes on where the other is."""
    one, two = stores.outbox(""), stores.outbox("")
    part, other = one.divide(FAST, 2, block=10)
    one.write_part(other, 10, 60, matches())
    assert one.write_part(part, 0, 25, matches(2, 9, 23)) == (25, 25)
    assert two.write_part(part, 0, 22, matches(2, 9)) == (25, 25)
    assert two.write_part(part, 0, 28, matches(2, 9, 23, 27)) == (28, 28)
    assert one.write_part(part, 25, 26, matches()) == (28, 28)
    assert told(one.read(0, 10)) == [2, 9, 23, 27]


def test_chunks_above_the_head_are_not_merged(stores: Twin) -> None:
    """A chunk that is written later may have its place between them."""
    outbox = stores.outbox("")
    outbox.write(0, 100, matches())
    one, two = outbox.divide(OutboxLane.SLOW, 2, block=10)
    outbox.write_part(one, 0, 45, matches(1, 21, 41))
    assert outbox.merge(before=90) == 0
    outbox.write_part(two, 10, 25, matches(11))
    assert outbox.merge(before=90) == 2
    assert told(outbox.read(0, 10, OutboxLane.SLOW)) == [1, 11, 21]
    outbox.write_part(two, 30, 45, matches(31))
    assert told(outbox.read(30, 10, OutboxLane.SLOW)) == [31, 41]


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_task_that_dies_around_a_write_and_writes_again_loses_and_doubles_nothing(stores: Twin, fault: Fault) -> None:
    part, other = stores.outbox("").divide(FAST, 2, block=10)
    stores.outbox("").write_part(other, 10, 35, matches(11, 33))
    with pytest.raises(Crash):
        FaultyOutbox(stores.outbox(""), [fault]).write_part(part, 0, 25, matches(2, 4, 22))
    restarted = stores.outbox("")
    head = restarted.progress(part).head
    restarted.write_part(part, head, 35, matches(*(at for at in (2, 4, 22, 26) if at > head)))
    assert told(restarted.read(0, 10)) == [2, 4, 11, 22, 26, 33]


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_pipeline_that_dies_around_a_write_and_writes_again_loses_and_doubles_nothing(
    stores: Twin, fault: Fault
) -> None:
    faulty = FaultyOutbox(stores.outbox("run"), [fault])
    with pytest.raises(Crash):
        faulty.write(0, 5, matches(2, 4))
    restarted = stores.outbox("run")
    restarted.write(0, 5, matches(2, 4))
    restarted.write(1, 6, matches(6))
    assert told(restarted.read(0, 10)) == [2, 4, 6]


@pytest.mark.parametrize("kind", TWIN_KINDS)
@settings(max_examples=25, deadline=None)
@given(
    hits=st.sets(st.integers(1, 30)),
    runs=st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=4), min_size=1, max_size=4),
)
def test_whatever_runs_begin_again_each_match_is_handed_out_once(
    kind: str, hits: set[int], runs: list[list[int]]
) -> None:
    """Every run begins at the start and cuts its batches its own way; matching is the same function for all."""
    reached = 0
    with open_twin(kind) as stores:
        for number, lengths in enumerate(runs):
            after, outbox = 0, stores.outbox(str(number))
            for batch, length in enumerate(lengths):
                upto = after + length
                outbox.write(batch, upto, matches(*sorted(at for at in hits if after < at <= upto)))
                after, reached = upto, max(reached, upto)
        outbox = stores.outbox("")
        assert told(outbox.read(0, 100)) == sorted(at for at in hits if at <= reached)
        assert outbox.head() == reached
