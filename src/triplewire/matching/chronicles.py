"""Chronicles: every event that was ever published, in order, from the lake where the log has let it go.

```
position   1 ──────────── lake ────────────┬──── not yet in the lake ────▶ head
                    log let go ────▶ begin ┴ ─ ─ ─ ─ log ─ ─ ─ ─ ─ ─ ─ ─▶
read from           the lake         │           the log
```

The log lets go only of what the lake has, so between the two nothing is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from triplewire.config import limits
from triplewire.model import MATCHED_COLUMNS, START
from triplewire.storage.log.ports import MeasuredLog


class Archive(Protocol):
    """Keeps what the log lets go."""

    def upto(self) -> int:
        """The position up to which it has every event."""

    def floor(self, stream: str | None = None) -> int:
        """The newest position of an event of a stream, or of any, that it was not to keep any longer."""

    def find(self, event: str, stream: str | None = None) -> int | None:
        """The newest position of the event with this id, in a stream or in any; None where it is not found."""

    def page(
        self, after: int, upto: int, limit: int, predicates: Sequence[str] = (), stream: str | None = None
    ) -> tuple[pa.Table, int]:
        """At most `limit` entries at positions p with `after < p <= upto`, in order, with the columns of `MATTER`, of
        one stream or of all; and the position up to which these are all. Events that do not have each of the predicates
        may be left out."""


@dataclass(frozen=True)
class Page:
    """Some entries, and the position up to which they are all that there are.

    `after` and `begin` enclose positions of which neither the archive nor the log knows anything: where there were
    events they are lost. Mostly there are no such positions.
    """

    entries: pa.Table
    reached: int
    after: int
    begin: int


@dataclass(frozen=True)
class Chronicle:
    """The log and, if there is one, the archive behind it."""

    log: MeasuredLog
    archive: Archive | None = None
    size: int = limits.PAST_BYTES
    """The bytes of text from which on a page of the log ends."""

    def head(self) -> int:
        """The newest position."""
        return self.log.head()

    def read(self, after: int, upto: int, limit: int) -> pa.Table:
        """At most `limit` entries at positions p with `after < p <= upto`, in order, with the columns of `MATTER`."""
        found: list[pa.Table] = []
        while limit > 0 and after < upto:
            page = self.page(after, upto, limit)
            found.append(page.entries)
            after, limit = page.reached, limit - page.entries.num_rows
        return pa.concat_tables(found) if found else self.log.read(after, after, 1).select(MATCHED_COLUMNS)

    def page(self, after: int, upto: int, limit: int, predicates: Sequence[str] = ()) -> Page:
        """The first of these, at most `limit`, in bounded time. Events that do not have each of the predicates may be
        left out."""
        # The log first: what it lets go of meanwhile is in the archive when that is looked at.
        enough = self.log.reach(after, upto, self.size)
        entries = self.log.read(after, enough, limit).select(MATCHED_COLUMNS)
        begin = self.begin()
        known = self.archive.upto() if self.archive is not None and begin > after + 1 else START
        end = min(upto, begin - 1, known)
        if self.archive is not None and end > after:
            older, reached = self.archive.page(after, end, limit, predicates)
            if older.num_rows or reached < end:
                return Page(older, reached, reached, reached)
        reached = enough if entries.num_rows < limit else entries["position"][-1].as_py()
        return Page(entries, reached, max(after, known), begin)

    def begin(self) -> int:
        """The position of the oldest event in the log, even if that was erased."""
        return self.log.begin()
