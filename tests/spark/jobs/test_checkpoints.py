"""Checkpoints: Spark's notes, as Spark writes them."""

from __future__ import annotations

from pathlib import Path

from triplewire.spark.jobs.source import Checkpoint


def test_the_end_of_a_batch_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text('v1\n{"batchWatermarkMs":0}\n{"position": 4711}')
    (tmp_path / "metadata").write_text('{"id":"0d5a"}')
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.position(3) == 4711
    assert checkpoint.id == "0d5a"
