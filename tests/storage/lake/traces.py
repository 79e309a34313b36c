"""Traces: every byte under a directory, and every value of every Parquet file there, in which something may be left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def traces(folder: Path, *needles: str) -> list[str]:
    """Which files still hold any of the texts."""
    files = [path for path in folder.glob("**/*") if any(_in(path, each) for each in needles)]
    return sorted(str(path.relative_to(folder)) for path in files)


def _in(path: Path, needle: str) -> bool:
    if not path.is_file():
        return False
    return needle.encode() in path.read_bytes() or (
        path.suffix == ".parquet" and any(needle in text for text in _texts(path))
    )


def _texts(path: Path) -> Iterator[str]:
    """Values and what the file says of itself, neither compressed."""
    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid:
        return
    yield str(file.read().to_pylist())
    yield str(file.metadata.to_dict())
