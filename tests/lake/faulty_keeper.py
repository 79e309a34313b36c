"""A housekeeper that kills itself, as `kill -9` would, in the middle of a piece of work.

`python -m tests.lake.faulty_keeper FOLDER WORK POINT`, where POINT is `file` (a file was written, others not yet),
`before` (all were written, nothing is committed), `after` (the commit stands) or `never`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from triplewire.config import limits
from triplewire.lake.balance import Balance
from triplewire.lake.compactions import compact
from triplewire.lake.criteria import Criterion
from triplewire.lake.delta import DeltaLake
from triplewire.lake.houses import House
from triplewire.lake.maps import ZoneMaps
from triplewire.lake.ports import Change
from triplewire.lake.relocations import balance
from triplewire.lake.retentions import Retention, retain
from triplewire.lake.vacuums import checkpoint, vacuum

T = TypeVar("T")
R = TypeVar("R")

SPLIT = Balance(zones=4, smallest=8, criteria=(Criterion("quads", 1.5, 0.5),))
MERGE = Balance(zones=1, smallest=1_000_000, criteria=(Criterion("quads", 2, 0.9),))
LATER = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=1, seconds=3)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def deadly_run(function: Callable[[T], Iterable[R]], items: Sequence[T]) -> list[R]:
    for item in items:
        for _ in function(item):
            die()
    return []


class DeadlyLake(DeltaLake):
    """Dies before or after its first change."""

    def __init__(self, path: Path, point: str) -> None:
        super().__init__(path)
        self._point = point

    def replace(self, change: Change) -> None:
        if self._point == "before":
            die()
        super().replace(change)
        if self._point == "after":
            die()


def swept(house: House) -> None:
    """Dies when the first file is gone, unless it is never to die."""
    vacuum(house.table, 0)
    checkpoint(house.table, 1)


WORKS: Mapping[str, Callable[[House], object]] = {
    "compaction": compact,
    "split": lambda house: balance(house, SPLIT),
    "merge": lambda house: balance(house, MERGE),
    "retention": lambda house: retain(house, Retention.parsed(["1h"]), LATER),
    "vacuum": swept,
}


def house(folder: Path, point: str = "never") -> House:
    limits.FILE_QUADS = 16
    made = House(DeadlyLake(folder / "quads", point), folder / "quads", ZoneMaps(folder / "zones"))
    return House(made.lake, made.table, made.maps, deadly_run) if point == "file" else made


if __name__ == "__main__":
    WORKS[sys.argv[2]](house(Path(sys.argv[1]), sys.argv[3]))
