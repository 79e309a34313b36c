"""Blocks: what goes into them comes out, in pieces that are small enough."""

from __future__ import annotations

import pyarrow as pa
import pytest

from triplewire.spark.jobs.exchange import BLOCK_BYTES, BLOCKS, pack_table, unpack_blocks


@pytest.mark.parametrize("most", [1, 400, BLOCK_BYTES])
def test_tables_come_out_as_they_went_in(most: int) -> None:
    table = pa.table({"position": range(50), "text": ["x" * size for size in range(50)]})
    batches = list(pack_table(table, most))
    assert all(batch.schema == BLOCKS and batch.num_rows == 1 for batch in batches)
    parts = list(unpack_blocks(batches))
    assert pa.concat_tables(parts).equals(table)
    assert all(part.num_rows == 1 or part.nbytes <= most for part in parts)


def test_nothing_is_no_block() -> None:
    assert list(pack_table(pa.table({"position": pa.array([], pa.int64())}))) == []
