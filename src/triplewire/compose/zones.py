"""The zone map of a lake with what lies in it, read from its files."""

from __future__ import annotations

from triplewire.config import Settings
from triplewire.model.clock import SystemClock
from triplewire.model.errors import NotFound
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.read_counts import load_read_counts
from triplewire.storage.lake.survey import LakeSurvey, survey_lake
from triplewire.storage.lake.zones import ZoneLayoutStore


def surveyed(settings: Settings) -> LakeSurvey:
    """Of the lake in a data directory. Raises NotFound if it has none."""
    snapshot = DeltaLake(settings.lake).files()
    if snapshot.version < 0:
        raise NotFound(f"there is no lake in {settings.data}: nothing was stored there yet; --data names another")
    zones = ZoneLayoutStore(settings.lake.with_name("zones")).read(snapshot.zones)
    return survey_lake(snapshot, zones, load_read_counts(settings.lake.with_name("reads"), SystemClock().now()))
