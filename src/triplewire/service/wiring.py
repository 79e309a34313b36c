"""Wiring: the embedded implementation behind each port of the pipeline, as openers that pickle.

Spark's Python workers import this module, so that it must not import the pipeline application.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from triplewire.config import Settings
from triplewire.config.tracing import open_tracer
from triplewire.continuous.state import StateGenerations
from triplewire.model.clock import SystemClock
from triplewire.model.errors import NotFound
from triplewire.service.task_log import open_log
from triplewire.spark.jobs.ports import ErasableStores, JobPorts
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.read_counts import load_read_counts
from triplewire.storage.lake.survey import LakeSurvey, survey_lake
from triplewire.storage.lake.zones import ZoneLayoutStore
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.outbox import SqliteOutbox
from triplewire.storage.registry.sqlite import SqliteRegistry
from triplewire.storage.signals import SignalReceiver, signal_folder

if TYPE_CHECKING:
    from triplewire.continuous.windows.static_data import PublishedStaticData
    from triplewire.storage.lake.entries import LakeEntries


def open_stores(settings: Settings) -> ErasableStores:
    registry = SqliteRegistry(settings.log, SystemClock())
    log = SqliteLog(settings.log, SystemClock())
    return ErasableStores(registry, log, SqliteOutbox(settings.outbox), StateGenerations(settings.continuous_state))


def _open_archive(lake: Path) -> LakeEntries:
    from triplewire.storage.lake.entries import LakeEntries

    return LakeEntries(DeltaLake(lake))


def _open_static_data(lake: Path, log: Path) -> PublishedStaticData:
    from triplewire.continuous.windows.static_data import PublishedStaticData

    return PublishedStaticData(DeltaLake(lake), open_log(log), SqliteRegistry(log, SystemClock()))


def pipeline_ports(settings: Settings) -> JobPorts:
    """Return the stores of the pipeline, as openers that pickle."""
    return JobPorts(
        open_log=partial(open_log, settings.log.absolute()),
        open_registry=partial(SqliteRegistry, settings.log.absolute(), SystemClock()),
        open_outbox=partial(SqliteOutbox, settings.outbox.absolute()),
        open_lake=partial(DeltaLake, settings.lake.absolute()),
        open_archive=partial(_open_archive, settings.lake.absolute()),
        open_static_data=partial(_open_static_data, settings.lake.absolute(), settings.log.absolute()),
        open_stores=partial(open_stores, settings),
        open_signals=partial(SignalReceiver, signal_folder(settings.log.absolute())),
        open_tracer=partial(open_tracer, settings.traces, "pipeline", settings.trace_ratio),
        lake_files=settings.lake.absolute(),
        index_files=settings.index.absolute(),
        reports=settings.checkpoints.absolute() / "reports",
    )


def survey_zones(settings: Settings) -> LakeSurvey:
    """Read the zone map and the contents of each zone from the lake's files. Raises NotFound if there is no lake."""
    snapshot = DeltaLake(settings.lake).files()
    if snapshot.version < 0:
        raise NotFound(f"there is no lake in {settings.data}: nothing is stored there yet; --data names another")
    zones = ZoneLayoutStore(settings.lake.with_name("zones")).read(snapshot.zones)
    return survey_lake(snapshot, zones, load_read_counts(settings.lake.with_name("reads"), SystemClock().now()))
