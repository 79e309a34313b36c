"""Statistics of the lake, for planning: counted anew when it has grown by a fifth since they last were."""

from __future__ import annotations

import duckdb

from triplewire.sparql.statistics import Counts, Statistics

GROWTH = 1.2
"""How much larger the lake must be before counting again pays: the counts are then still right within a fifth, and
all counting together takes no longer than counting six times at the end."""

_COUNT = """
SELECT predicate, count(*), approx_count_distinct(hash(subject, object)), approx_count_distinct(subject),
       approx_count_distinct(object)
FROM quads GROUP BY GROUPING SETS ((predicate), ())
"""


class Counting:
    """Statistics by the size of what they were counted of. Belongs to one process."""

    def __init__(self) -> None:
        self._rows = -1
        self._found = Statistics()

    def of(self, duck: duckdb.DuckDBPyConnection, rows: int) -> Statistics:
        """About the relation `quads` of a connection, which has this many rows."""
        if self._rows < 0 or not self._rows <= rows <= self._rows * GROWTH:
            self._found = _counted(duck)
            self._rows = rows
        return self._found


def _counted(duck: duckdb.DuckDBPyConnection) -> Statistics:
    found = {row[0]: Counts(row[1], min(row[1], row[2]), row[3], row[4]) for row in duck.execute(_COUNT).fetchall()}
    total = found.pop(None, Counts(0, 0, 0, 0))
    return Statistics(found, total)
