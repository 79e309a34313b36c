"""The rival of `bench history`: pyoxigraph's bulk load to disk, of the same quads."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph as ox

VERSION = ox.__version__


@dataclass(frozen=True)
class Load:
    """How long it took, and what it takes on the disk."""

    seconds: float
    size: int


def load(quads: Path, directory: Path) -> Load:
    """Load a file of N-Quads into a new store, until all of it is on the disk."""
    began = time.perf_counter()
    store = ox.Store(directory)
    store.bulk_load(path=str(quads), format=ox.RdfFormat.N_QUADS)
    store.flush()
    seconds = time.perf_counter() - began
    return Load(seconds, size(directory))


def write(bodies: Iterable[bytes], path: Path) -> None:
    with path.open("wb") as file:
        file.writelines(bodies)


def size(directory: Path) -> int:
    """Bytes of all files below."""
    return sum(each.stat().st_size for each in directory.rglob("*") if each.is_file())
