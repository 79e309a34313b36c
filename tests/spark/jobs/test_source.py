"""The source: how a range of positions becomes parts of a batch."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from triplewire.model import MATCHED_COLUMNS, Event
from triplewire.model.clock import ManualClock
from triplewire.spark.jobs.exchange import BLOCK_BYTES, unpack_blocks
from triplewire.spark.jobs.source import (
    BATCH_TEXT_BYTES,
    BLOCK_EVENTS,
    SMALLEST_PART,
    Batching,
    LogReader,
    PositionRange,
    split_positions,
)
from triplewire.storage.log.ports import MeasuredLog, Publication
from triplewire.storage.registry.ontologies import BATCH_EVENTS
from triplewire.testing import open_twin, publication


@given(st.integers(0, 10**12), st.integers(0, 100_000), st.integers(1, 64))
def test_parts_cover_the_range_without_gap_or_overlap(after: int, length: int, parts: int) -> None:
    found = cast(list[PositionRange], split_positions(after, after + length, parts))
    assert len(found) <= parts
    if not length:
        assert found == []
        return
    assert (found[0].after, found[-1].through) == (after, after + length)
    assert all(left.through == right.after for left, right in pairwise(found))
    assert len(found) == 1 or all(part.through - part.after >= SMALLEST_PART for part in found)


def reader(log: MeasuredLog, parts: int = 2) -> LogReader:
    return LogReader(lambda: log, Batching(0, parts), ManualClock())


def test_a_batch_is_what_its_offsets_say() -> None:
    with open_twin("memory") as stores:
        stores.log.append([publication(*range(10))])
        found = reader(stores.log)
        end = found.latestOffset({"position": 0}, found.getDefaultReadLimit())
        assert end == {"position": 10}
        stores.log.append([publication(11)])
        (part,) = found.partitions({"position": 3}, end)
        (entries,) = unpack_blocks(found.read(part))
        assert tuple(entries.column_names) == MATCHED_COLUMNS
        assert entries["position"].to_pylist() == list(range(4, 11))


def test_an_idle_log_gives_no_new_offset_and_a_long_one_not_all_at_once() -> None:
    with open_twin("memory") as stores:
        found = reader(stores.log)
        limit = found.getDefaultReadLimit()
        assert found.latestOffset({"position": 0}, limit) == {"position": 0}
        stores.log.append([publication(*range(BATCH_EVENTS + 5))])
        assert found.latestOffset({"position": 0}, limit) == {"position": BATCH_EVENTS}
        assert found.latestOffset({"position": BATCH_EVENTS}, limit) == {"position": BATCH_EVENTS + 5}


def test_a_batch_is_cut_by_bytes_too() -> None:
    text = f'<urn:s>\t<urn:p>\t"{"x" * (BATCH_TEXT_BYTES // 4)}"'
    with open_twin("memory") as stores:
        stores.log.append([Publication("test", [Event(f"urn:{number}", text) for number in range(10)])])
        found, ends = reader(stores.log), [0]
        while ends[-1] < stores.log.head():
            ends.append(found.latestOffset({"position": ends[-1]}, found.getDefaultReadLimit())["position"])
        assert ends == [0, 4, 8, 10]


def test_what_is_read_at_once_is_cut_by_rows_and_by_bytes() -> None:
    large = Event("urn:large", f'<urn:s>\t<urn:p>\t"{"x" * BLOCK_BYTES}"')
    with open_twin("memory") as stores:
        stores.log.append([publication(*range(BLOCK_EVENTS + 2)), Publication("test", [large] * 2), publication(1)])
        found = reader(stores.log)
        blocks = [*unpack_blocks(found.read(PositionRange(0, stores.log.head() + 7)))]
        assert blocks[0].num_rows == BLOCK_EVENTS
        assert all(each.num_rows == 1 or each.nbytes <= BLOCK_BYTES for each in blocks)
        assert [at for each in blocks for at in each["position"].to_pylist()] == [*range(1, BLOCK_EVENTS + 6)]


def test_small_batches_keep_a_distance_and_large_ones_come_at_once() -> None:
    clock = ManualClock()
    with open_twin("memory") as stores:
        found = LogReader(lambda: stores.log, Batching(0, 2, pace=1.0), clock)
        limit = found.getDefaultReadLimit()

        def end(after: int) -> int:
            return found.latestOffset({"position": after}, limit)["position"]

        stores.log.append([publication(1)])
        assert end(0) == 1
        stores.log.append([publication(2)])
        assert end(1) == 1, "it waits for others"
        clock.advance(1.0)
        assert end(1) == 2
        stores.log.append([publication(*range(2 * SMALLEST_PART))])
        assert end(2) == 2 + 2 * SMALLEST_PART, "many do not wait"
        assert end(2 + 2 * SMALLEST_PART) == 2 + 2 * SMALLEST_PART


def test_options_say_what_a_batch_is() -> None:
    batching = Batching(7, 2, 10, 99, 0.5)
    assert Batching.from_options({name: str(value) for name, value in asdict(batching).items()}) == batching
