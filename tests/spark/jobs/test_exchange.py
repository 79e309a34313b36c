"""What comes out of tasks is all there in the driver, in blocks or by way of files."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from triplewire.spark.jobs.exchange import (
    EXCHANGED,
    INPUT,
    collect_outputs,
    pass_through,
    read_inputs,
    send_report,
    send_to_driver,
    send_to_partition,
)

SCHEMA = pa.schema([pa.field("n", pa.int64())])


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": list(values)}, SCHEMA)


class Shipped:
    """A frame of what tasks gave."""

    def __init__(self, *batches: pa.RecordBatch) -> None:
        self._batches = batches

    def toArrow(self) -> pa.Table:
        return pa.Table.from_batches(self._batches, EXCHANGED)


def frame(*batches: pa.RecordBatch) -> DataFrame:
    return cast("DataFrame", Shipped(*batches))


@pytest.mark.parametrize("least", [0, 30, 10_000])
def test_outputs_and_reports_are_collected_and_no_file_stays(least: int, tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    shipped = [
        *send_to_driver(numbers(1, 2), folder, least),
        *send_to_driver(numbers(*range(3, 10)), folder, least),
        send_report("well"),
    ]
    files = len(list(folder.iterdir())) if folder.exists() else 0
    assert files == {0: 2, 30: 1, 10_000: 0}[least]
    found, reports = collect_outputs(frame(*shipped), SCHEMA, folder)
    assert sorted(found["n"].to_pylist()) == list(range(1, 10))
    assert reports == ["well"]
    assert not folder.exists()


def test_files_of_a_retried_task_are_neither_collected_nor_kept(tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    list(send_to_driver(numbers(1), folder, 0))
    found, _ = collect_outputs(frame(*send_to_driver(numbers(1), folder, 0)), SCHEMA, folder)
    assert found["n"].to_pylist() == [1]
    assert not (tmp_path / "answers").exists()


def test_a_partition_reads_its_inputs_and_passes_on_the_rest(tmp_path: Path) -> None:
    given = [
        *send_to_partition(3, numbers(1)),
        *send_to_driver(numbers(2), tmp_path, 20),
        *send_to_driver(numbers(3, 4, 5), tmp_path, 20),
        send_report("r"),
    ]
    (batch,) = pa.Table.from_batches(given, EXCHANGED).combine_chunks().to_batches()
    assert [each["n"].to_pylist() for each in read_inputs(batch)] == [[1]]
    (others,) = pass_through(batch)
    assert INPUT not in others["kind"].to_pylist()
    found, reports = collect_outputs(frame(others), SCHEMA, tmp_path)
    assert (sorted(found["n"].to_pylist()), reports) == ([2, 3, 4, 5], ["r"])
