"""Retrospects: the log read backwards, from its head to a moment or to one event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.access.sights import Sight
from triplewire.config import limits
from triplewire.matching.sights import redacted
from triplewire.model.errors import NotFound


class Events(Protocol):
    """Events in order: a log, or a log with what lies behind it."""

    def head(self) -> int:
        """The newest position."""

    def read(self, after: int, upto: int, limit: int) -> pa.Table:
        """At most `limit` entries at positions p with `after < p <= upto`, in order."""


@dataclass(frozen=True)
class Seen:
    """What somebody sees of others. Of entries that are left out nothing is told, nor that they are."""

    events: Events
    sight: Sight | None = None

    def head(self) -> int:
        return self.events.head()

    def read(self, after: int, upto: int, limit: int) -> pa.Table:
        """At most `limit` entries: fewer does not mean that there are no more."""
        return redacted(self.events.read(after, upto, limit), self.sight)


def backwards(log: Events, after: int, upto: int) -> Iterator[pa.Table]:
    """The entries at positions p with `after < p <= upto`: batches of few positions, the newest batch first, each in
    order of position. Batches without entries are left out."""
    while upto > after:
        start = max(after, upto - limits.RETROSPECT_BATCH)
        batch = log.read(start, upto, limits.RETROSPECT_BATCH)
        if batch.num_rows:
            yield batch
        upto = start


def since(log: Events, moment: int, upto: int) -> int:
    """The position after which every entry up to another was received at a moment or later. Takes few reads: entries
    are in the order in which they were received, as far as the clock did not jump."""
    before, after = 0, upto
    while before < after:
        middle = (before + after) // 2
        entries = log.read(middle, upto, 1)
        if not entries.num_rows or entries["received"][0].as_py() >= moment:
            after = middle
        else:
            before = entries["position"][0].as_py()
    return after


def newest(log: Events, event: str) -> dict[str, Any]:
    """The newest entry of the event with this id, as a row of `ENTRIES`. Raises NotFound if none of the newest
    positions has it: an older event must be asked for by its position."""
    head = log.head()
    for batch in backwards(log, max(0, head - limits.RETROSPECT_POSITIONS), head):
        found = batch.filter(pc.equal(batch["event"], event))
        if found.num_rows:
            row: dict[str, Any] = found.slice(found.num_rows - 1).to_pylist()[0]
            return row
    hint = "an older one can be asked for by its position"
    raise NotFound(f"no event {event} is among the newest {limits.RETROSPECT_POSITIONS:,}; {hint}")


def at(log: Events, position: int) -> dict[str, Any]:
    """The entry at a position. Raises NotFound."""
    for row in log.read(position - 1, position, 1).to_pylist():
        found: dict[str, Any] = row
        return found
    raise NotFound("no event is at that position, or the log let it go")
