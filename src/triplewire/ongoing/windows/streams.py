"""Streams: what a place has of one, for all its queries."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model.subscriptions import TimeDomain
from triplewire.ongoing.windows.contents import Stored
from triplewire.ongoing.windows.instants import Arrived, Events, Numbers
from triplewire.ongoing.windows.timelines import Timeline


class Stream:
    """Its events by both clocks, and what they say."""

    def __init__(self, duck: duckdb.DuckDBPyConnection, table: str, schema: pa.Schema) -> None:
        self.stored = Stored(duck, table, schema)
        self.timelines = {time: Timeline() for time in TimeDomain}

    def add(self, entries: pa.Table, arrivals: Numbers) -> Arrived:
        """Events in the order of their positions, and when each counts as received."""
        sizes = pc.add(pc.count_substring(entries["text"], "\n"), 1).to_numpy().astype(np.int64)
        times, received = (entries[name].to_numpy() for name in ("time", "received"))
        arrived = Arrived(entries["position"].to_numpy(), sizes, arrivals, times, received)
        self.stored.add(entries, sizes)
        for time, timeline in self.timelines.items():
            timeline.add(arrived.by(time))
        return arrived

    def keep(self, needed: Iterable[Events]) -> None:
        """Forget what nobody needs."""
        positions = together(needed)
        self.stored.keep(positions)
        for timeline in self.timelines.values():
            timeline.keep(self.stored.positions)

    def kept(self, needed: Iterable[Events]) -> tuple[pa.Table, list[list[int]]]:
        """The events that are needed, as they came; and of those that do not count as received when they were, their
        positions and when they count."""
        entries = self.stored.entries(together(needed))
        known = self.timelines[TimeDomain.ARRIVAL].events
        order = np.argsort(known.positions)
        places = order[np.searchsorted(known.positions[order], entries["position"].to_numpy())]
        moved = known.moments[places] != entries["received"].to_numpy()
        pairs = np.stack([known.positions[places][moved], known.moments[places][moved]], axis=1)
        return entries, pairs.tolist()


def together(needed: Iterable[Events]) -> Numbers:
    """The positions of all of them, each once, in order."""
    return np.unique(np.concatenate([np.empty(0, np.int64), *(each.positions for each in needed)]))
