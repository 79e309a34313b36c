"""Figures of continuous queries: what stations and places of windows said of themselves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from triplewire.kernels.compiler import Int64
from triplewire.ongoing.network.emitting import ADDRESSES
from triplewire.ongoing.network.stations import BUCKETS
from triplewire.ongoing.windows.places import Figures as WindowFigures
from triplewire.pipeline.joins import Report


@dataclass
class Figures:
    """What stations said: the newest of how much they have, and the sum of what came to them."""

    rows: dict[int, int] = field(default_factory=dict)
    bytes: dict[int, int] = field(default_factory=dict)
    addresses: Int64 = field(default_factory=lambda: np.zeros(ADDRESSES, np.int64))
    crowded: set[int] = field(default_factory=set)
    heavy: set[int] = field(default_factory=set)
    windows: dict[int, WindowFigures] = field(default_factory=dict)

    def take(self, report: Report) -> None:
        self.rows[report.station], self.bytes[report.station] = report.rows, report.bytes
        self.addresses += report.addresses
        self.crowded.update(report.crowded)
        self.heavy.update(report.heavy)

    def told(self) -> dict[str, object]:
        loads = np.bincount(np.arange(ADDRESSES) % BUCKETS, self.addresses, BUCKETS)
        return {
            "state_rows": sum(self.rows.values()) + sum(each.rows for each in self.windows.values()),
            "state_bytes": sum(self.bytes.values()) + sum(each.bytes for each in self.windows.values()),
            "late": sum(count for each in self.windows.values() for count in each.dropped.values()),
            "loads": [int(each) for each in loads],
            "addresses": int(np.count_nonzero(self.addresses)),
        }
