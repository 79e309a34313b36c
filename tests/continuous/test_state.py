"""Ledgers: a place is made again of what was written, whoever writes a batch twice, and whatever was dropped."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.continuous.state import BEFORE_ALL, StateChangelog
from triplewire.model.errors import Unavailable


def table(*numbers: int) -> pa.Table:
    return pa.table({"number": pa.array(numbers, pa.int64())})


def read(ledger: StateChangelog, after: tuple[int, int], before: tuple[int, int]) -> tuple[bool, list[int]]:
    past = ledger.read_range(after, before)
    return past.complete, [number for each in past for number in each["number"].to_pylist()]


def test_all_rounds_before_one_are_read_in_order(tmp_path: Path) -> None:
    ledger = StateChangelog(tmp_path / "a")
    for moment, number in [((0, 1), 1), ((0, 2), 2), ((1, 1), 3), ((10, 1), 4)]:
        ledger.write(moment, table(number))

    assert read(ledger, BEFORE_ALL, (10, 1)) == (True, [1, 2, 3])
    assert read(ledger, BEFORE_ALL, (11, 0)) == (True, [1, 2, 3, 4])
    assert read(ledger, (0, 1), (10, 1)) == (False, [2, 3])


def test_a_round_that_is_done_again_is_written_over(tmp_path: Path) -> None:
    ledger = StateChangelog(tmp_path)
    ledger.write((0, 1), table(1))
    ledger.write((0, 1), table(2))

    assert read(ledger, BEFORE_ALL, (1, 1)) == (True, [2])


def test_what_is_written_as_a_whole_takes_the_place_of_all_before(tmp_path: Path) -> None:
    ledger = StateChangelog(tmp_path)
    for batch in range(4):
        ledger.write((batch, 1), table(batch))
    ledger.write_snapshot(2, table(0, 1, 2))

    assert read(ledger, BEFORE_ALL, (4, 1)) == (True, [0, 1, 2, 3])
    assert ledger.trim(2) == 3
    assert read(ledger, BEFORE_ALL, (4, 1)) == (True, [0, 1, 2, 3])


def test_who_is_further_behind_than_what_is_left_begins_anew(tmp_path: Path) -> None:
    ledger = StateChangelog(tmp_path)
    for batch in range(4):
        ledger.write((batch, 1), table(batch))
    ledger.write_snapshot(2, table(0, 1, 2))
    ledger.trim(2)

    assert read(ledger, (0, 1), (4, 1)) == (True, [0, 1, 2, 3])
    assert read(ledger, (3, 0), (4, 1)) == (False, [3])


def test_a_whole_that_is_not_yet_before_a_batch_is_not_read_for_it(tmp_path: Path) -> None:
    ledger = StateChangelog(tmp_path)
    for batch in range(3):
        ledger.write((batch, 1), table(batch))
    ledger.write_snapshot(2, table(0, 1, 2))

    assert read(ledger, BEFORE_ALL, (2, 1)) == (True, [0, 1])


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    ledger = StateChangelog(tmp_path)
    ledger.write((0, 1), table(*range(1_000)))
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:40])

    with pytest.raises(Unavailable, match=file.name):
        list(ledger.read_range(BEFORE_ALL, (1, 1)))


def test_what_a_writer_left_that_died_is_not_read(tmp_path: Path) -> None:
    ledger = StateChangelog(tmp_path)
    ledger.write((0, 1), table(1))
    (tmp_path / "000000000001-1.4711").write_bytes(b"half")

    assert read(ledger, BEFORE_ALL, (2, 1)) == (True, [1])


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), max_size=12), st.integers(0, 6), st.integers(0, 7))
def test_trimming_changes_nothing_for_later_batches(
    tmp_path_factory: pytest.TempPathFactory, moments: list[tuple[int, int]], whole: int, batch: int
) -> None:
    ledger = StateChangelog(tmp_path_factory.mktemp("ledger"))
    for moment in moments:
        ledger.write(moment, table(10 * moment[0] + moment[1]))
    written = sorted(set(moments))
    ledger.write_snapshot(whole, table(*(10 * one + two for one, two in written if one <= whole)))
    ledger.trim(whole)

    before = (max(batch, whole + 1), 1)
    assert read(ledger, BEFORE_ALL, before)[1] == [10 * one + two for one, two in written if (one, two) < before]
