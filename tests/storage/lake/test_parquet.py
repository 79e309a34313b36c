"""Parquet: how rows lie in a data file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from triplewire.storage.lake.data_files import QUICK, ROW_GROUP, write_durably


@pytest.mark.parametrize("rows", [0, 1, ROW_GROUP, ROW_GROUP + 1, 3 * ROW_GROUP - 1])
def test_row_groups_are_alike_and_none_is_too_large(tmp_path: Path, rows: int) -> None:
    names = ("position", "graph", "subject", "predicate", "object")
    texts = {name: pa.array([f"<{name}:{each}>" for each in range(rows)], pa.string()) for name in names[1:]}
    made = pa.table({"position": pa.array(range(rows), pa.int64()), **texts})
    size = write_durably(made, tmp_path / "f.parquet", QUICK)
    file = pq.ParquetFile(tmp_path / "f.parquet")
    groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    assert (file.read(), (tmp_path / "f.parquet").stat().st_size) == (made, size)
    assert max(groups, default=0) <= ROW_GROUP
    assert max(groups, default=0) - min(groups, default=0) <= len(groups)
    assert len(groups) == max(1, -(-rows // ROW_GROUP))
