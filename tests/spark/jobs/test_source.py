"""The source: how a range of positions becomes parts of a batch."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from triplewire.model import MATCHED_COLUMNS, Event
from triplewire.spark.jobs.exchange import BLOCK_BYTES
from triplewire.spark.jobs.source import (
    BATCH_TEXT_BYTES,
    BLOCK_EVENTS,
    SMALLEST_PART,
    Batching,
    PositionRange,
    plan_batch,
    read_blocks,
    split_positions,
)
from triplewire.storage.log.ports import MeasuredLog, Publication
from triplewire.storage.registry.ontologies import BATCH_EVENTS
from triplewire.testing import open_twin, publication


@given(st.integers(0, 10**12), st.integers(0, 100_000), st.integers(1, 64))
def test_parts_cover_the_range_without_gap_or_overlap(after: int, length: int, parts: int) -> None:
    found = split_positions(after, after + length, parts)
    assert len(found) <= parts
    if not length:
        assert found == []
        return
    assert (found[0].after, found[-1].through) == (after, after + length)
    assert all(left.through == right.after for left, right in pairwise(found))
    assert len(found) == 1 or all(part.through - part.after >= SMALLEST_PART for part in found)


def ends(log: MeasuredLog, events: int = BATCH_EVENTS) -> list[int]:
    """Return where batches end, one after the other."""
    found = [0]
    while (end := plan_batch(log, found[-1], events, BATCH_TEXT_BYTES)) > found[-1]:
        found.append(end)
    return found


def test_an_idle_log_has_no_batch_and_a_long_one_is_not_one() -> None:
    with open_twin("memory") as stores:
        assert ends(stores.log) == [0]
        stores.log.append([publication(*range(BATCH_EVENTS + 5))])
        assert ends(stores.log) == [0, BATCH_EVENTS, BATCH_EVENTS + 5]


def test_a_batch_is_cut_by_bytes_too() -> None:
    text = f'<urn:s>\t<urn:p>\t"{"x" * (BATCH_TEXT_BYTES // 4)}"'
    with open_twin("memory") as stores:
        stores.log.append([Publication("test", [Event(f"urn:{number}", text) for number in range(10)])])
        assert ends(stores.log) == [0, 4, 8, 10]


def test_a_range_is_read_as_it_is_said() -> None:
    with open_twin("memory") as stores:
        stores.log.append([publication(*range(12))])
        (entries,) = read_blocks(stores.log, PositionRange(3, 10))
        assert tuple(entries.column_names) == MATCHED_COLUMNS
        assert entries["position"].to_pylist() == list(range(4, 11))
        assert [*read_blocks(stores.log, PositionRange(12, 19))] == []


def test_what_is_read_at_once_is_cut_by_rows_and_by_bytes() -> None:
    large = Event("urn:large", f'<urn:s>\t<urn:p>\t"{"x" * BLOCK_BYTES}"')
    with open_twin("memory") as stores:
        stores.log.append([publication(*range(BLOCK_EVENTS + 2)), Publication("test", [large] * 2), publication(1)])
        blocks = [*read_blocks(stores.log, PositionRange(0, stores.log.head() + 7))]
        assert blocks[0].num_rows == BLOCK_EVENTS
        assert all(each.num_rows == 1 or each["text"].nbytes <= 2 * BLOCK_BYTES for each in blocks)
        assert [at for each in blocks for at in each["position"].to_pylist()] == [*range(1, BLOCK_EVENTS + 6)]


def test_options_say_what_a_batch_is() -> None:
    batching = Batching(7, 10, 99)
    assert Batching.from_options({name: str(value) for name, value in asdict(batching).items()}) == batching
