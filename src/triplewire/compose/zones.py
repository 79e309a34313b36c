"""The zone map of a lake with what lies in it, read from its files."""

from __future__ import annotations

from triplewire.clock import SystemClock
from triplewire.config import Settings
from triplewire.errors import NotFound
from triplewire.lake.delta import DeltaLake
from triplewire.lake.maps import ZoneMaps
from triplewire.lake.reads import reads
from triplewire.lake.surveys import Survey, survey


def surveyed(settings: Settings) -> Survey:
    """Of the lake in a data directory. Raises NotFound if it has none."""
    snapshot = DeltaLake(settings.lake).files()
    if snapshot.version < 0:
        raise NotFound(f"there is no lake in {settings.data}: nothing was stored there yet; --data names another")
    zones = ZoneMaps(settings.lake.with_name("zones")).read(snapshot.zones)
    return survey(snapshot, zones, reads(settings.lake.with_name("reads"), SystemClock().now()))
