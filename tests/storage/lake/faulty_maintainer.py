"""A maintainer that kills itself, as `kill -9` would, in the middle of a piece of work.

`python -m tests.storage.lake.faulty_maintainer FOLDER WORK POINT`: POINT is `file` (one file was written, others not),
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

from triplewire.storage.lake.balance import BalanceSettings, LoadCriterion
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.maintenance import MaintenanceContext, checkpoint, compact, run_sequentially, vacuum
from triplewire.storage.lake.ports import TableChange
from triplewire.storage.lake.rebalancing import rebalance
from triplewire.storage.lake.retention import LakeRetention, apply_retention
from triplewire.storage.lake.zones import ZoneLayoutStore

T = TypeVar("T")
R = TypeVar("R")

SPLIT = BalanceSettings(zones=4, smallest=8, criteria=(LoadCriterion("quads", 1.5, 0.5),))
MERGE = BalanceSettings(zones=1, smallest=1_000_000, criteria=(LoadCriterion("quads", 2, 0.9),))
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

    def replace(self, change: TableChange) -> None:
        if self._point == "before":
            die()
        super().replace(change)
        if self._point == "after":
            die()


def swept(context: MaintenanceContext) -> None:
    """Dies when the first file is gone, unless it is never to die."""
    vacuum(context.table, 0)
    checkpoint(context.table, 1)


WORKS: Mapping[str, Callable[[MaintenanceContext], object]] = {
    "compaction": compact,
    "split": lambda context: rebalance(context, SPLIT),
    "merge": lambda context: rebalance(context, MERGE),
    "retention": lambda context: apply_retention(context, LakeRetention.parsed(["1h"]), LATER),
    "vacuum": swept,
}


def maintained(folder: Path, point: str = "never") -> MaintenanceContext:
    lake, maps = DeadlyLake(folder / "quads", point), ZoneLayoutStore(folder / "zones")
    run = deadly_run if point == "file" else run_sequentially
    return MaintenanceContext(lake, folder / "quads", maps, run, file_quads=16)


if __name__ == "__main__":
    WORKS[sys.argv[2]](maintained(Path(sys.argv[1]), sys.argv[3]))
