"""Event history: every event that was ever published, in order, from the log and from the lake behind it, read
forwards by page or backwards in a backfill scan.

```
position   1 ──────────── lake ────────────┬──── not yet in the lake ────▶ head
               dropped by the log ──▶ begin ┴ ─ ─ ─ ─ log ─ ─ ─ ─ ─ ─ ─ ─▶
read from           the lake         │           the log
```

The log drops only events that the lake has, so nothing is missing between the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.matching.visibility import redact_entries
from triplewire.model import MATCHED_COLUMNS, START
from triplewire.model.errors import NotFound
from triplewire.security.visibility import Visibility
from triplewire.storage.lake.entries import LAKE_PAGE_BYTES
from triplewire.storage.log.ports import LOOKUP_POSITIONS, MeasuredLog

SCAN_POSITIONS: Final = 2_000
"""Positions that a backward scan reads at once: about 2 MB for events of 1 kB, 20 ms to match."""


class ColdTier(Protocol):
    """The tier that holds the events that the log has dropped."""

    def head(self) -> int:
        """The position up to which it has every event."""

    def floor(self, stream: str | None = None) -> int:
        """The newest position of an event, of a stream or of any, that retention has removed."""

    def find(self, event: str, stream: str | None = None) -> int | None:
        """The newest position of the event with this id, in a stream or in any; None if it is not found."""

    def page(
        self, after: int, through: int, limit: int, predicates: Sequence[str] = (), stream: str | None = None
    ) -> tuple[pa.Table, int]:
        """At most `limit` entries at positions p with `after < p <= through`, in order, with the columns of
        `MATCHED_COLUMNS`, of one stream or of all; and the position up to which these are complete. Events without
        one of the predicates may be left out."""


@dataclass(frozen=True)
class EventPage:
    """Some entries, and the position up to which they are complete. Between `after` and `begin` neither tier has
    anything: events at these positions are lost. Usually there are no such positions."""

    entries: pa.Table
    position: int
    after: int
    begin: int


@dataclass(frozen=True)
class EventHistory:
    """The log and, if there is one, the cold tier behind it."""

    log: MeasuredLog
    archive: ColdTier | None = None
    size: int = LAKE_PAGE_BYTES
    """Bytes of text after which a page of the log ends."""

    def head(self) -> int:
        """The newest position."""
        return self.log.head()

    def read(self, after: int, through: int, limit: int) -> pa.Table:
        """At most `limit` entries at positions p with `after < p <= through`, in order, with the columns of
        `MATCHED_COLUMNS`."""
        found: list[pa.Table] = []
        while limit > 0 and after < through:
            page = self.page(after, through, limit)
            found.append(page.entries)
            after, limit = page.position, limit - page.entries.num_rows
        return pa.concat_tables(found) if found else self.log.read(after, after, 1).select(MATCHED_COLUMNS)

    def page(self, after: int, through: int, limit: int, predicates: Sequence[str] = ()) -> EventPage:
        """The first of these entries, at most `limit`, in bounded time. Events without one of the predicates may be
        left out."""
        # The log is asked first: events that it drops meanwhile are in the cold tier when that is asked.
        enough = self.log.page_end(after, through, self.size)
        entries = self.log.read(after, enough, limit).select(MATCHED_COLUMNS)
        begin = self.begin()
        known = self.archive.head() if self.archive is not None and begin > after + 1 else START
        end = min(through, begin - 1, known)
        if self.archive is not None and end > after:
            older, position = self.archive.page(after, end, limit, predicates)
            if older.num_rows or position < end:
                return EventPage(older, position, position, position)
        position = enough if entries.num_rows < limit else entries["position"][-1].as_py()
        return EventPage(entries, position, max(after, known), begin)

    def begin(self) -> int:
        """The position of the oldest event in the log, even if it was erased."""
        return self.log.begin()


class EventReader(Protocol):
    """Events in order: a log, or a history."""

    def head(self) -> int:
        """The newest position."""

    def read(self, after: int, through: int, limit: int) -> pa.Table:
        """At most `limit` entries at positions p with `after < p <= through`, in order."""


@dataclass(frozen=True)
class VisibleEvents:
    """The events of another reader, redacted for a subscriber. Entries that are hidden leave no trace."""

    events: EventReader
    visibility: Visibility | None = None

    def head(self) -> int:
        return self.events.head()

    def read(self, after: int, through: int, limit: int) -> pa.Table:
        """At most `limit` entries; fewer does not mean that there are no more."""
        return redact_entries(self.events.read(after, through, limit), self.visibility)


def scan_backwards(log: EventReader, after: int, through: int, positions: int = SCAN_POSITIONS) -> Iterator[pa.Table]:
    """The entries at positions p with `after < p <= through`, in batches of `positions`: the newest batch first,
    each in order of position. Empty batches are left out."""
    while through > after:
        start = max(after, through - positions)
        batch = log.read(start, through, positions)
        if batch.num_rows:
            yield batch
        through = start


def find_position(log: EventReader, moment: int, through: int) -> int:
    """The position after which every entry up to `through` was received at an instant or later. It takes few reads by
    binary search: entries are in order of reception, as far as the clock did not jump."""
    before, after = 0, through
    while before < after:
        middle = (before + after) // 2
        entries = log.read(middle, through, 1)
        if not entries.num_rows or entries["received"][0].as_py() >= moment:
            after = middle
        else:
            before = entries["position"][0].as_py()
    return after


def find_newest(log: EventReader, event: str) -> dict[str, Any]:
    """The newest entry of the event with this id, as a row of `ENTRIES`. Raises NotFound if none of the newest
    positions has it: an older event must be requested by its position."""
    head = log.head()
    for batch in scan_backwards(log, max(0, head - LOOKUP_POSITIONS), head):
        found = batch.filter(pc.equal(batch["event"], event))
        if found.num_rows:
            row: dict[str, Any] = found.slice(found.num_rows - 1).to_pylist()[0]
            return row
    hint = "an older one can be asked for by its position"
    raise NotFound(f"no event {event} is among the newest {LOOKUP_POSITIONS:,}; {hint}")


def read_entry(log: EventReader, position: int) -> dict[str, Any]:
    """The entry at a position. Raises NotFound."""
    for row in log.read(position - 1, position, 1).to_pylist():
        found: dict[str, Any] = row
        return found
    raise NotFound("no event is at that position, or the log let it go")
