"""Entries of `bench match`: events as the log's source gives them to Spark, in Parquet files."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.bench.match_oxigraph import Sampled
from triplewire.bench.match_paths import BASE
from triplewire.bench.match_workloads import Workload
from triplewire.model import ENTRIES, MATCHED_COLUMNS
from triplewire.spark.jobs.exchange import BLOCKS, pack_table, unpack_blocks
from triplewire.spark.jobs.source import BLOCK_EVENTS

BEGAN = 1_794_816_000_000_000
"""The time of the first event, in microseconds; each is a millisecond after the one before."""


@dataclass(frozen=True)
class Entries:
    """The events of some numbers, at positions that follow one another."""

    directory: Path
    numbers: range
    before: int
    """The position before the first."""

    def __len__(self) -> int:
        return len(self.numbers)

    def texts(self, count: int) -> list[str]:
        """Of the first so many, or of a group of rows where that is less."""
        first = next(unpack_blocks(pq.ParquetFile(self._files[0]).iter_batches(1)))
        texts: list[str] = first["text"].slice(0, count).to_pylist()
        return texts

    def sample(self, count: int) -> list[Sampled]:
        """So many, evenly spread."""
        names = ["position", "stream", "event", "text"]
        blocks = (batch for file in self._files for batch in pq.ParquetFile(file).iter_batches(1))
        table = pa.concat_tables(entries.select(names) for entries in unpack_blocks(blocks))
        chosen = range(0, len(self), max(1, len(self) // count))[:count]
        columns = (table[name].take(pa.array(chosen, pa.int64())).to_pylist() for name in names)
        return [Sampled(*row) for row in zip(*columns, strict=True)]

    def drop(self) -> None:
        """Remove the files."""
        for file in self._files:
            file.unlink()

    @property
    def _files(self) -> list[Path]:
        return sorted(self.directory.glob("*.parquet"))


def write(workload: Workload, numbers: range, before: int, directory: Path, parts: int) -> Entries:
    """Draw the events and write them as so many files, in blocks as large as those of the pipeline."""
    directory.mkdir(parents=True)
    marks = [len(numbers) * part // parts for part in range(parts + 1)]
    for part, (first, last) in enumerate(pairwise(marks)):
        with pq.ParquetWriter(
            directory / f"{part:04}.parquet", BLOCKS, compression="none", use_dictionary=False
        ) as writer:
            for start in range(first, last, BLOCK_EVENTS):
                group = range(start, min(last, start + BLOCK_EVENTS))
                table = _table(workload, [numbers[each] for each in group], before + 1 + start)
                for block in pack_table(table.select(MATCHED_COLUMNS)):
                    writer.write_batch(block)
    return Entries(directory, numbers, before)


def _table(workload: Workload, numbers: list[int], position: int) -> pa.Table:
    streams, texts = zip(*map(workload.event, numbers), strict=True)
    size = len(numbers)
    times = pa.array([BEGAN + 1_000 * number for number in numbers], pa.int64())
    columns = {
        "position": pa.array(range(position, position + size), pa.int64()),
        "stream": pa.array(streams, pa.string()),
        "event": pa.array([f"{BASE}e/{number}" for number in numbers], pa.string()),
        "text": pa.array(texts, pa.string()),
        "source": pa.nulls(size, pa.string()),
        "application": pa.nulls(size, pa.string()),
        "time": times,
        "received": times,
        "syntax": pa.array(["application/n-quads"] * size, pa.string()),
        "extensions": pa.nulls(size, pa.string()),
    }
    return pa.table(columns, schema=ENTRIES)
