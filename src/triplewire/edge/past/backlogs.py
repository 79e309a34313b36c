"""Backlogs: every event of a stream that was published and is kept, in order, wherever it is kept.

```
position   1 ─── lake ──▶┬─── log ───▶┬─── memory ───▶ live
              the log     │ trimmed    │ what passes
              let it go   │ up to here │ have read
```

A page is read from one of them. The next begins where it ended, so that it does not matter what moves from one to
the
other in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.config import limits
from triplewire.edge.past.gaps import Gap, lost
from triplewire.edge.past.memories import Memories
from triplewire.edge.ports import Entries
from triplewire.matching.event_history import ColdTier
from triplewire.model import ENTRIES
from triplewire.model.subscriptions import Names

_SYNTAX = "application/n-quads"
"""Of what the archive gives back, which does not know how it was written."""

_ATTEMPTS = 4
"""Readings of one page, while what it is read from is let go under it. Each time less is left that can be."""


@dataclass(frozen=True)
class Page:
    """Entries of one stream, as `ENTRIES`, and the position up to which they are all that there are. What is missing
    before them was lost since the listener was last told so."""

    entries: pa.Table
    reached: int
    gap: Gap | None = None


@dataclass(frozen=True)
class Backlog:
    """Memory, log and, if there is one, the archive behind it. Any thread may read."""

    log: Entries
    archive: ColdTier | None = None
    memories: Memories = field(default_factory=Memories)
    size: int = limits.PAST_BYTES
    """The bytes of text from which on a page of the log ends."""

    def lost(self, streams: Names) -> int:
        """The newest position of an event of these streams, or of any, that is kept nowhere."""
        return lost(self.log, self.archive, streams)

    def log_lost(self, streams: Names) -> int:
        """The newest that the log let go: of what was matched nothing is kept longer."""
        return lost(self.log, None, streams)

    def find(self, event: str, stream: str | None = None) -> int | None:
        """The newest position of the event with this id, in a stream or in any; None where it is not found, in bounded
        time."""
        found = None if stream is None else self.memories.find(stream, event)
        if found is None:
            found = self.log.find(event, stream)
        if found is None and self.archive is not None:
            found = self.archive.find(event, stream)
        return found

    def recent(self, stream: str, after: int, upto: int, limit: int) -> Page | None:
        """The first entries after a position, at most `limit`, where memory or the log has all of the stream from there
        on; else None. It takes some milliseconds."""
        remembered = self.memories.page(stream, after, upto, limit)
        if remembered is not None:
            return Page(*remembered)
        found = self._logged(stream, after, upto, limit)
        # Asked after the reading: what went meanwhile may be missing in it.
        return found if self.log.gone(stream) <= after else None

    def older(self, stream: str, after: int, upto: int, limit: int, told: int) -> Page:
        """The first entries after a position, wherever they are. `told` is the position up to which the listener knows
        what is lost. It may take a while."""
        page, known = Page(ENTRIES.empty_table(), after), after
        for _ in range(_ATTEMPTS):
            page = self._stored(stream, after, upto, limit)
            last = self.lost(stream)
            if last <= max(after, told) or last == known:
                break
            # What was lost while it was read may be in it, and what was lost before is not: once more, to tell of all.
            known = last
        first = max(after, told) + 1
        return Page(page.entries, page.reached, Gap(first, known)) if known >= first else page

    def _stored(self, stream: str, after: int, upto: int, limit: int) -> Page:
        # The log first: what it lets go of meanwhile is in the archive when that is looked at.
        logged = self._logged(stream, after, upto, limit)
        if self.archive is None or self.log.gone(stream) <= after:
            return logged
        end = min(upto, self.log.begin() - 1, self.archive.upto())
        if end <= after:
            return logged
        found, reached = self.archive.page(after, end, limit, stream=stream)
        return Page(_entries(found), reached) if found.num_rows or reached < end else logged

    def _logged(self, stream: str, after: int, upto: int, limit: int) -> Page:
        enough = self.log.reach(after, upto, self.size)
        found = self.log.read(after, enough, limit)
        reached = enough if found.num_rows < limit else found["position"][-1].as_py()
        return Page(found.filter(pc.equal(found["stream"], stream)), reached)


def _entries(recalled: pa.Table) -> pa.Table:
    """What the archive gives back, with the column that it does not have."""
    syntax = pa.array([_SYNTAX] * recalled.num_rows, pa.string())
    columns = {**{name: recalled[name] for name in recalled.column_names}, "syntax": syntax}
    return pa.table([columns[name] for name in ENTRIES.names], schema=ENTRIES)
