"""Twins: which implementation stands behind each port. The only place, with the rest of `compose`, that names them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from triplewire.compose.guards import open_log
from triplewire.config import Settings
from triplewire.continuous.state import StateGenerations
from triplewire.continuous.windows.static_data import PublishedStaticData
from triplewire.model.clock import SystemClock
from triplewire.spark.jobs.ports import ErasableStores, JobPorts
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.entries import LakeEntries
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.outbox import SqliteOutbox
from triplewire.storage.registry.sqlite import SqliteRegistry


def open_stores(settings: Settings) -> ErasableStores:
    registry = SqliteRegistry(settings.log, SystemClock())
    log = SqliteLog(settings.log, SystemClock())
    outbox, slow, ongoing = map(SqliteOutbox, (settings.outbox, settings.slow_outbox, settings.ongoing_outbox))
    return ErasableStores(registry, log, outbox, slow, ongoing, StateGenerations(settings.kept))


def _archive(lake: Path) -> LakeEntries:
    return LakeEntries(DeltaLake(lake))


def _background(lake: Path, log: Path) -> PublishedStaticData:
    return PublishedStaticData(DeltaLake(lake), open_log(log), SqliteRegistry(log, SystemClock()))


def pipeline_ports(settings: Settings) -> JobPorts:
    """The embedded twins, as openers that pickle."""
    return JobPorts(
        open_log=partial(open_log, settings.log.absolute()),
        open_registry=partial(SqliteRegistry, settings.log.absolute(), SystemClock()),
        open_outbox=partial(SqliteOutbox, settings.outbox.absolute()),
        open_slow=partial(SqliteOutbox, settings.slow_outbox.absolute()),
        open_ongoing=partial(SqliteOutbox, settings.ongoing_outbox.absolute()),
        open_lake=partial(DeltaLake, settings.lake.absolute()),
        open_archive=partial(_archive, settings.lake.absolute()),
        open_background=partial(_background, settings.lake.absolute(), settings.log.absolute()),
        open_stores=partial(open_stores, settings),
        lake_files=settings.lake.absolute(),
        index_files=settings.index.absolute(),
    )
