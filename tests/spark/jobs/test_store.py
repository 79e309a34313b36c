"""Store: what one file takes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from triplewire.spark.jobs.store import FILE_EVENTS, FILE_TEXT_BYTES, gather_tables


def tables(*sizes: tuple[int, int]) -> list[pa.Table]:
    """Of so many rows with so many bytes in all."""
    return [pa.table({"text": pa.array(["x" * (size // rows)] * rows, pa.large_string())}) for rows, size in sizes]


SMALL, HALF = (10, 1_000), (FILE_EVENTS // 2, FILE_EVENTS * 10)
LARGE = (4, FILE_TEXT_BYTES)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ([], []),
        ([SMALL], [10]),
        ([SMALL, SMALL], [20]),
        ([HALF, HALF, HALF], [FILE_EVENTS, FILE_EVENTS // 2]),
        ([SMALL, LARGE, LARGE, SMALL], [14, 4, 10]),
    ],
)
def test_a_file_takes_tables_until_it_has_enough(given: Sequence[tuple[int, int]], made: list[int]) -> None:
    assert [each.num_rows for each in gather_tables(iter(tables(*given)))] == made
