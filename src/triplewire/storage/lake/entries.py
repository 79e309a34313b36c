"""Events read back from the quad table, as they stood in the log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final

import pyarrow as pa

from triplewire.model import ENTRIES, MATCHED_COLUMNS, Erasure
from triplewire.model.erasure import apply_erasures
from triplewire.storage.lake.data_files import connect_duckdb
from triplewire.storage.lake.ports import DataFile, RetentionAwareLake, Snapshot

LAKE_PAGE_BYTES: Final = 4 * 1024 * 1024
"""Text of such events, and what of one of them goes over that. About eight times as much is in memory for a moment."""

LAKE_PAGE_FILES: Final = 32
"""Files of the lake that are opened at once for that: some 50 ms at worst, where each holds little."""

LAKE_LOOKUP_FILES: Final = 256
"""Files of the lake, the newest that may have it, that are opened to find an event by its id: under a second."""


LAKE_ENTRIES = pa.schema([ENTRIES.field(name) for name in MATCHED_COLUMNS])
"""The columns of `ENTRIES` that the lake keeps: what is matched and told, not in which syntax it was written."""

# The first events that fit, by number and by size, are found before any text is put together.
_PAGE = """
WITH stored AS (
    SELECT * FROM read_parquet($files) WHERE position > $after AND position <= $through{within}
), found AS (
    SELECT * FROM stored{having}
), sizes AS (
    SELECT position, sum(
        strlen(subject) + strlen(predicate) + strlen(object) + 3 + coalesce(strlen(extensions), 0)
    ) AS size
    FROM found GROUP BY position ORDER BY position LIMIT $limit
), totals AS (
    SELECT position, sum(size) OVER (ORDER BY position) - size AS before FROM sizes
)
SELECT
    position, any_value(stream) AS stream, any_value(graph[2:-2]) AS event,
    string_agg(subject || chr(9) || predicate || chr(9) || object, chr(10) ORDER BY quad) AS text,
    any_value(source) AS source, any_value(application) AS application,
    epoch_us(any_value(time)) AS time, epoch_us(any_value(received)) AS received, any_value(extensions) AS extensions
FROM found WHERE position <= (SELECT max(position) FROM totals WHERE before < $size)
GROUP BY position ORDER BY position
"""


# Files are sorted by predicate, so that of most events no more is read than this.
_HAVING = """ WHERE position IN (
    SELECT position FROM stored WHERE predicate IN ({names})
    GROUP BY position HAVING count(DISTINCT predicate) = {count}
)"""


_WITHIN = " AND stream = $stream"

_FIND = "SELECT max(position) FROM read_parquet($files) WHERE "


class LakeEntries:
    """The events of a lake, page by page. Any thread may use it; they take turns."""

    def __init__(
        self,
        lake: RetentionAwareLake,
        size: int = LAKE_PAGE_BYTES,
        pending: Callable[[], Sequence[Erasure]] = tuple,
        *,
        page_files: int = LAKE_PAGE_FILES,
    ) -> None:
        """A page has at most `size` bytes of text and extensions, and the rest of the event that exceeds that. Events
        that are being erased (`pending`) are left out. At most `page_files` are opened at once."""
        self._page_files = page_files
        self._lake = lake
        self._size = size
        self._pending = pending
        self._turn = Lock()
        self._duck = connect_duckdb()

    def head(self) -> int:
        """The position up to which the lake has every event."""
        return self._lake.files().position

    def floor(self, stream: str | None = None) -> int:
        """The newest position of an event of a stream, or of any, that the lake was not to keep any longer."""
        return self._lake.floor(stream)

    def page(
        self, after: int, through: int, limit: int, predicates: Sequence[str] = (), stream: str | None = None
    ) -> tuple[pa.Table, int]:
        """At most `limit` entries at positions p with `after < p <= through`, in order, as a `LAKE_ENTRIES` table, and
        the position up to which these are all. Only events that have all of some predicates, if any are named, and of
        one stream, if it is. Few files are opened, so there may be none where more are to come."""
        # Each file has an event for the page, or nearly each.
        files, end = _choose_files(self._lake.files(), after, through, min(limit, self._page_files), stream)
        if not files:
            return LAKE_ENTRIES.empty_table(), end
        asked = {"files": files, "after": after, "through": end, "limit": limit, "size": self._size}
        asked |= {f"p{number}": each for number, each in enumerate(predicates)}
        asked |= {} if stream is None else {"stream": stream}
        with self._turn:
            found = pa.table(self._duck.sql(_sql(len(predicates), stream), params=asked)).cast(LAKE_ENTRIES)
        whole = found.num_rows < limit and found.nbytes < self._size
        return apply_erasures(found, self._pending()), end if whole else found["position"][-1].as_py()

    def find(self, event: str, stream: str | None = None) -> int | None:
        """The newest position of the event with this id, in a stream or in any; None where the newest files that may
        have it do not."""
        snapshot, wanted = self._lake.files(), {"graph": f"<{event}>"} | ({} if stream is None else {"stream": stream})
        likely = [each for each in snapshot.files if all(_may_have(each, *pair) for pair in wanted.items())]
        files = [
            f"{snapshot.table}/{each.path}" for each in sorted(likely, key=lambda file: file.last)[-LAKE_LOOKUP_FILES:]
        ]
        if not files:
            return None
        condition = " AND ".join(f"{name} = ${name}" for name in wanted)
        with self._turn:
            found = self._duck.execute(_FIND + condition, {"files": files, **wanted}).fetchone()
        return found[0] if found else None


def _sql(predicates: int, stream: str | None) -> str:
    names = ", ".join(f"$p{number}" for number in range(predicates))
    having = _HAVING.format(names=names, count=predicates) if predicates else ""
    return _PAGE.format(having=having, within="" if stream is None else _WITHIN)


def _may_have(file: DataFile, column: str, value: str) -> bool:
    """Whether a file may have a row with this value; it may where nothing is known of the column."""
    least, greatest = file.ranges.get(column, ("", chr(sys.maxunicode)))
    return least is not None and greatest is not None and str(least) <= value <= str(greatest)


def _choose_files(
    snapshot: Snapshot, after: int, through: int, most: int, stream: str | None = None
) -> tuple[list[str], int]:
    """The files to open for the next events, and the position up to which they hold everything. The files of one range
    of time, one per zone, belong together."""
    inside = [
        each
        for each in snapshot.files
        if each.last > after and each.first <= through and (stream is None or _may_have(each, "stream", stream))
    ]
    end = through if len(inside) <= most else min(through, max(each.last for each in inside[:most]))
    return [f"{snapshot.table}/{each.path}" for each in inside if each.first <= end], end
