"""Maps: the zone maps that a lake has had, as a small Delta table beside it.

A map is written first. It holds from the commit of the lake on that names its version: a crash in between leaves a
version that nobody names.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from triplewire.lake.zones import ZONES, ZoneMap


class ZoneMaps:
    """By version. -1 is the map of one zone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[int, ZoneMap] = {-1: ZoneMap()}

    def write(self, zones: ZoneMap) -> int:
        """The version under which it is read."""
        write_deltalake(self.path, zones.to_table().cast(ZONES), mode="overwrite", name="zones")
        version = DeltaTable(self.path).version()
        self._known[version] = zones
        return version

    def forget(self) -> None:
        """Maps were written anew in their own places: they are read again."""
        self._known = {-1: ZoneMap()}

    def read(self, version: int) -> ZoneMap:
        if version not in self._known:
            self._known[version] = ZoneMap.from_table(pa.table(DeltaTable(self.path, version).to_pyarrow_table()))
        return self._known[version]
