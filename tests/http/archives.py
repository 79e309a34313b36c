"""An archive in memory: what a lake is to an edge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model import MATCHED_COLUMNS, Erasure
from triplewire.model.erasure import apply_erasures
from triplewire.storage.lake.entries import LAKE_ENTRIES


def undisturbed() -> None:
    """Nothing happens in between."""


@dataclass
class MemoryArchive:
    """Pages end early where they are told to. `before` happens at the beginning of each page."""

    most: int = 100
    complete: int = 0
    entries: pa.Table = field(default_factory=LAKE_ENTRIES.empty_table)
    floors: dict[str, int] = field(default_factory=dict)
    before: Callable[[], None] = undisturbed

    def store(self, entries: pa.Table, through: int) -> None:
        self.entries = pa.concat_tables([self.entries, entries.select(MATCHED_COLUMNS)])
        self.complete = through

    def retain(self, position: int, streams: Sequence[str]) -> None:
        """Let the events of some streams go that are at or before a position."""
        chosen = pc.is_in(self.entries["stream"], pa.array(streams, pa.string()))
        going = pc.and_(chosen, pc.less_equal(self.entries["position"], position))
        for row in self.entries.filter(going).to_pylist():
            self.floors[row["stream"]] = max(row["position"], self.floors.get(row["stream"], 0))
        self.entries = self.entries.filter(pc.invert(going))

    def erase(self, erasure: Erasure) -> None:
        self.entries = apply_erasures(self.entries, [erasure])

    def head(self) -> int:
        return self.complete

    def floor(self, stream: str | None = None) -> int:
        return max(self.floors.values(), default=0) if stream is None else self.floors.get(stream, 0)

    def find(self, event: str, stream: str | None = None) -> int | None:
        rows = [row for row in self.entries.to_pylist() if row["event"] == event and stream in (None, row["stream"])]
        return rows[-1]["position"] if rows else None

    def page(
        self, after: int, through: int, limit: int, predicates: Sequence[str] = (), stream: str | None = None
    ) -> tuple[pa.Table, int]:
        self.before()
        rows = self.entries.to_pylist()
        near = [number for number, row in enumerate(rows) if after < row["position"] <= through][
            : min(self.most, limit)
        ]
        reached = rows[near[-1]]["position"] if len(near) == min(self.most, limit) else through
        chosen = [number for number in near if stream in (None, rows[number]["stream"])]
        return self.entries.take(pa.array(chosen, pa.int64())), reached
