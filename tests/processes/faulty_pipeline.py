"""A pipeline that kills itself, as `kill -9` would, at the point that its argument names.

The outbox is written in a worker of Spark's: at `before-fast` the worker and the driver die, at `worker-before-fast`
the worker alone, and that three times.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from triplewire.config import Settings
from triplewire.model import Erasure
from triplewire.model.clock import SystemClock
from triplewire.service.pipeline import run_application
from triplewire.service.wiring import open_stores, pipeline_ports
from triplewire.spark.jobs.ports import ErasableStores
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch, DataFile, Snapshot, TableChange, VersionOrTime
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.outbox import (
    PART_POSITIONS,
    OutboxChunk,
    OutboxLane,
    OutboxPart,
    PartProgress,
    SqliteOutbox,
)

WORKER_KILLS = 3


def die_at(here: str, point: str, driver: int = 0) -> None:
    if here == point:
        if driver:
            os.kill(driver, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def worker_dies_at(here: str, point: str, folder: Path) -> None:
    killed = len([*folder.glob("killed-*")])
    if f"worker-{here}" == point and killed < WORKER_KILLS:
        (folder / f"killed-{killed}").touch()
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class DeadlyOutbox:
    """An outbox whose writer dies before or after the first write that holds matches."""

    outbox: SqliteOutbox
    point: str
    driver: int
    folder: Path

    def write(self, batch: int, position: int, matches: pa.Table, lane: OutboxLane = OutboxLane.FAST) -> None:
        self._die(f"before-{lane}", matches)
        self.outbox.write(batch, position, matches, lane)
        self._die(f"after-{lane}", matches)

    def _die(self, here: str, matches: pa.Table) -> None:
        if matches.num_rows:
            die_at(here, self.point, self.driver)
            worker_dies_at(here, self.point, self.folder)

    def divide(self, lane: OutboxLane, count: int, after: int = 0, block: int = PART_POSITIONS) -> Sequence[OutboxPart]:
        return self.outbox.divide(lane, count, after, block)

    def write_part(self, part: OutboxPart, after: int, position: int, matches: pa.Table) -> PartProgress:
        self._die(f"before-{part.lane}", matches)
        progress = self.outbox.write_part(part, after, position, matches)
        self._die(f"after-{part.lane}", matches)
        return progress

    def progress(self, part: OutboxPart) -> PartProgress:
        return self.outbox.progress(part)

    def read(self, after: int, limit: int, lane: OutboxLane = OutboxLane.FAST) -> list[OutboxChunk]:
        return self.outbox.read(after, limit, lane)

    def head(self, lane: OutboxLane = OutboxLane.FAST) -> int:
        return self.outbox.head(lane)

    def sync(self) -> None:
        self.outbox.sync()

    def trim(self, before: int) -> int:
        return self.outbox.trim(before)

    def merge(self, before: int) -> int:
        return self.outbox.merge(before)

    def erase(self, positions: Collection[int]) -> int:
        return self.outbox.erase(positions)


@dataclass
class DeadlyLake:
    """A lake whose writer dies before or after the first commit that holds files."""

    lake: DeltaLake
    point: str

    def commit(self, batch: CommitBatch, files: Sequence[DataFile]) -> bool:
        if files:
            die_at("before-lake", self.point)
        done = self.lake.commit(batch, files)
        if files:
            die_at("after-lake", self.point)
        return done

    def replace(self, change: TableChange) -> None:
        self.lake.replace(change)

    def files(self, at: VersionOrTime | None = None) -> Snapshot:
        return self.lake.files(at)


def open_outbox(settings: Settings, point: str, driver: int, run: str) -> DeadlyOutbox:
    return DeadlyOutbox(SqliteOutbox(settings.outbox, run), point, driver, settings.data)


@dataclass
class DeadlyLog:
    """A log whose eraser dies before it has erased anything there: the outbox is done by then."""

    log: SqliteLog

    def erase(self, erasure: Erasure) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a log has
        return getattr(self.log, name)


def stores(settings: Settings, point: str) -> ErasableStores:
    opened = open_stores(settings)
    deadly = DeadlyLog(SqliteLog(settings.log, SystemClock()))
    return replace(opened, log=deadly) if point == "before-erasure" else opened


def open_lake(settings: Settings, point: str) -> DeadlyLake:
    return DeadlyLake(DeltaLake(settings.lake), point)


def main(point: str) -> None:
    settings = Settings.from_environment()
    ports = replace(
        pipeline_ports(settings),
        open_outbox=partial(open_outbox, settings, point, os.getpid()),
        open_lake=partial(open_lake, settings, point),
        open_stores=partial(stores, settings, point),
    )
    run_application(settings, ports)


if __name__ == "__main__":
    main(sys.argv[1])
