"""The house: a lake with what keeps it in order, for the pipeline and for commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from triplewire.config import Settings
from triplewire.lake.delta import DeltaLake
from triplewire.lake.houses import House, Progress
from triplewire.lake.locks import housekeeping
from triplewire.lake.maps import ZoneMaps
from triplewire.lake.retentions import Retention
from triplewire.lake.rules import balance_of
from triplewire.pipeline.housekeeper import Rules
from triplewire.pipeline.session import start_session
from triplewire.pipeline.tasks import run


def lake_house(table: Path) -> House:
    """Over the embedded twins, with nobody to work in it yet."""
    return House(DeltaLake(table), table, ZoneMaps(table.parent / "zones"))


def rules(settings: Settings) -> Rules:
    """Raises InputError for settings that make no sense."""
    retention = Retention.parsed(settings.keep, settings.keep_bytes)
    return Rules(retention, balance_of(settings.balance), settings.travel_hours)


@contextmanager
def keeping_house(settings: Settings, told: Callable[[Progress], None]) -> Iterator[House]:
    """A house that this process alone keeps, on a Spark of its own. Waits for whoever keeps it now."""
    table = settings.lake.absolute()
    with housekeeping(table, wait=True):
        spark = start_session("triplewire lake", settings.master, settings.driver_memory)
        try:
            tasks = spark.sparkContext.defaultParallelism
            made = lake_house(table)
            yield House(made.lake, table, made.maps, partial(run, spark), tasks, told)
        finally:
            spark.stop()
