"""Contents: what events say, of each stream once for all windows over it.

In an engine of the place's own a stream is a table of quads with those columns that queries read. What no window
needs
any more is taken out when it has become much, by making the table anew. Beside it stand the events as they came: of
these a place is made again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.config import limits
from triplewire.ongoing.windows.instants import Numbers
from triplewire.sparql import QUADS, explode, to_sql
from triplewire.sparql.dialects.duckdb import register_functions

POSITION = "position"
_TYPES = {
    POSITION: "BIGINT",
    "quad": "INTEGER",
    "object_number": "DOUBLE",
    **dict.fromkeys(("object_time", "time", "received"), "TIMESTAMP"),
}
"""Of columns that hold no text."""


def engine() -> duckdb.DuckDBPyConnection:
    """In memory, for one thread; it opens no files."""
    config: dict[str, Any] = {"threads": 1, "memory_limit": limits.WINDOW_MEMORY, "temp_directory": ""}
    duck = duckdb.connect(config={**config, "autoload_known_extensions": False})
    register_functions(duck)
    return duck


class Stored:
    """The events of one stream. Positions only grow."""

    def __init__(self, duck: duckdb.DuckDBPyConnection, table: str, schema: pa.Schema) -> None:
        self._duck, self.table = duck, table
        self._columns: list[str] = []
        self._entries = [schema.empty_table()]
        self.positions = np.empty(0, np.int64)
        self.sizes = np.empty(0, np.int64)

    @property
    def rows(self) -> int:
        return int(self.sizes.sum())

    @property
    def bytes(self) -> int:
        """Of the events as they came; the table takes about twice as much."""
        return sum(each.nbytes for each in self._entries)

    def want(self, columns: Collection[str]) -> None:
        """Have these columns, too, for events that come from now on: of those before nobody asks for them."""
        for name in QUADS:
            if name in columns and name not in self._columns:
                self._add_column(name)

    def _add_column(self, name: str) -> None:
        kind = _TYPES.get(name, "VARCHAR")
        if self._columns:
            self._duck.execute(f'ALTER TABLE {self.table} ADD COLUMN "{name}" {kind}')
        else:
            self._duck.execute(f'CREATE TABLE {self.table} ("{name}" {kind})')
        self._columns.append(name)

    def add(self, entries: pa.Table, sizes: Numbers) -> None:
        """Events in the order of their positions, with the number of quads of each."""
        names = ", ".join(f'"{name}"' for name in self._columns)
        # What was erased is still an event, of which nothing is left.
        self._duck.register("entries", entries.filter(pc.not_equal(entries["text"], "")))
        self._duck.execute(f"INSERT INTO {self.table} ({names}) SELECT {names} FROM ({_exploded(*self._columns)})")
        self._duck.unregister("entries")
        self._entries.append(entries)
        self.positions = np.concatenate([self.positions, entries[POSITION].to_numpy()])
        self.sizes = np.concatenate([self.sizes, sizes])

    def entries(self, positions: Numbers) -> pa.Table:
        """The events at these positions, as they came."""
        found = pa.concat_tables(self._entries)
        return found.filter(pa.array(np.isin(found[POSITION].to_numpy(), positions)))

    def keep(self, positions: Numbers) -> None:
        """Forget all others, if they have become many."""
        kept = np.isin(self.positions, positions)
        gone = int(self.sizes[~kept].sum())
        if gone <= max(limits.WINDOW_SLACK_TRIPLES, self.rows // 4):
            return
        self._duck.execute(f"CREATE OR REPLACE TABLE {self.table} AS {self.selected(positions, self._columns)}")
        self._entries = [self.entries(positions).combine_chunks()]
        self.positions, self.sizes = self.positions[kept], self.sizes[kept]

    def drop(self) -> None:
        self._duck.execute(f"DROP TABLE {self.table}")

    def selected(self, positions: Numbers, columns: Iterable[str]) -> str:
        """The query for some columns of the quads of these events."""
        names = ", ".join(f'"{name}"' for name in columns)
        return f"SELECT {names} FROM {self.table} WHERE {self._among(positions)}"

    def _among(self, positions: Numbers) -> str:
        if not len(positions):
            return "false"
        first, last = int(positions[0]), int(positions[-1])
        between = f"position BETWEEN {first} AND {last}"
        here = np.searchsorted(self.positions, [first, last + 1])
        if here[1] - here[0] == len(positions):
            return between
        self._duck.register("chosen", pa.table({POSITION: positions}))
        return f"{between} AND position IN (SELECT position FROM chosen)"


@lru_cache(maxsize=64)
def _exploded(*columns: str) -> str:
    return to_sql(explode("entries", columns), "duckdb")
