"""The table in the hands of a reader that is not ours and not the one that wrote it: the kernel of the Delta
project.

It follows the log of the table and reads the files by itself, as Spark, Trino or DuckDB with Delta do.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import delta_kernel_rust_sharing_wrapper as kernel
import duckdb
import pyarrow as pa

from tests.service.transfer.lakes import rows, stored
from triplewire.storage.lake.data_files import QUADS, FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import TableChange


def read(folder: Path) -> pa.Table:
    """Every row that the table has now."""
    address = f"file://{folder}/"
    interface = kernel.PythonInterface(address)
    scan = kernel.ScanBuilder(kernel.Table(address).snapshot(interface)).build()
    return scan.execute(interface).read_all()


def in_order(found: pa.Table) -> list[dict[str, object]]:
    ordered: list[dict[str, object]] = found.sort_by([("position", "ascending"), ("quad", "ascending")]).to_pylist()
    return ordered


def expected(lake: DeltaLake) -> list[dict[str, object]]:
    names = ", ".join(QUADS.names)
    files = {"files": list(lake.files().paths)}
    return in_order(pa.table(duckdb.sql(f"SELECT {names} FROM read_parquet($files)", params=files)).cast(QUADS))


def test_it_finds_every_quad_with_its_values(tmp_path: Path) -> None:
    lake = stored(tmp_path, [range(1, 9), range(9, 12)])
    found = read(tmp_path)
    assert found.column_names == [*QUADS.names, "zone"]
    assert in_order(found.drop_columns(["zone"])) == expected(lake)
    assert found["zone"].null_count == found.num_rows


def test_it_follows_changes_to_the_files(tmp_path: Path) -> None:
    lake = stored(tmp_path, [range(1, 9), range(9, 12), [12]])
    first, second, _ = lake.files().files
    moved = replace(FileWriter(tmp_path).write(rows(range(1, 12))), zone="z0")
    lake.replace(TableChange((first, second), (moved,)))
    found = read(tmp_path)
    assert in_order(found.drop_columns(["zone"])) == expected(lake)
    assert sorted(set(zip(found["position"].to_pylist(), found["zone"].to_pylist(), strict=True))) == [
        *((position, "z0") for position in range(1, 12)), (12, None)
    ]  # fmt: skip
