"""Evaluation of window queries in DuckDB: stream tables shared by all windows of a partition, and answers per batch.

A stream is a table of quads with the columns that queries read. Quads that no window needs any more are removed once
they are many, by rebuilding the table. The original events are kept beside it: a partition is rebuilt from them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.continuous.windows.assigners import ArrivedEvents, Int64Array, TimedEvents
from triplewire.continuous.windows.panes import StreamTimeline, WindowContent, WindowView
from triplewire.continuous.windows.plans import WindowPlan
from triplewire.continuous.windows.static_data import StaticTable, explode_sql
from triplewire.model import ENTRIES, MATCHED_COLUMNS
from triplewire.model.errors import QueryLimit
from triplewire.model.subscriptions import TimeDomain
from triplewire.rdf.parser import EVENT_QUADS
from triplewire.sparql import QUADS
from triplewire.sparql.cpu_limit import LIMIT_ERRORS, CpuLimit

WINDOW_SLACK_TRIPLES: Final = 10_000
"""Triples of a stream that no window needs and that stay until they are more, or a quarter of all. To drop some means
to copy the others, 20 ms for 100,000."""

WINDOW_MEMORY: Final = "2GB"
"""Memory of the engine of all windows of a partition. A query that needs more is suspended."""

WINDOW_CPU_SECONDS: Final = 30.0
"""CPU time of a query on its windows when one closes. Others wait meanwhile; a query that takes more is suspended."""

WINDOW_ROWS: Final = 10_000
"""Solutions of a query on its windows, which make one event. A query with more is suspended."""

WINDOW_TRIPLES: Final = 1_000_000
"""Triples in the windows of one continuous query: at worst some 500 MB. A query with more is suspended."""


@dataclass(frozen=True)
class WindowLimits:
    """The limits of each query of a partition; `built` are the triples that a CONSTRUCT makes at once."""

    triples: int = WINDOW_TRIPLES
    rows: int = WINDOW_ROWS
    built: int = EVENT_QUADS
    cpu_seconds: float = WINDOW_CPU_SECONDS
    slack_triples: int = WINDOW_SLACK_TRIPLES


INPUTS = pa.schema([ENTRIES.field(name) for name in MATCHED_COLUMNS])
"""The input of a partition: the events of its streams."""

POSITION = "position"
_TYPES = {
    POSITION: "BIGINT",
    "quad": "INTEGER",
    "object_number": "DOUBLE",
    **dict.fromkeys(("object_time", "time", "received"), "TIMESTAMP"),
}
"""The types of columns that hold no text."""


class StreamTable:
    """The events of one stream, in order of position, as a table of quads."""

    def __init__(self, duck: duckdb.DuckDBPyConnection, table: str, slack: int) -> None:
        """`slack` are triples that no event needs and that stay, because dropping some means copying the others."""
        self._duck, self.table, self._slack = duck, table, slack
        self._columns: list[str] = []
        self._entries = [INPUTS.empty_table()]
        self.positions = np.empty(0, np.int64)
        self.sizes = np.empty(0, np.int64)

    @property
    def rows(self) -> int:
        return int(self.sizes.sum())

    @property
    def bytes(self) -> int:
        """The size of the original events; the table takes about twice as much."""
        return sum(each.nbytes for each in self._entries)

    def want(self, columns: Collection[str]) -> None:
        """Add columns for events that come from now on; queries over earlier events do not read them."""
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

    def add(self, entries: pa.Table, sizes: Int64Array) -> None:
        """Add events in order of position, with the number of quads of each."""
        names = ", ".join(f'"{name}"' for name in self._columns)
        # An erased event stays, without text.
        self._duck.register("entries", entries.filter(pc.not_equal(entries["text"], "")))
        self._duck.execute(f"INSERT INTO {self.table} ({names}) SELECT {names} FROM ({explode_sql(*self._columns)})")
        self._duck.unregister("entries")
        self._entries.append(entries)
        self.positions = np.concatenate([self.positions, entries[POSITION].to_numpy()])
        self.sizes = np.concatenate([self.sizes, sizes])

    def entries(self, positions: Int64Array) -> pa.Table:
        """Return the original events at some positions."""
        found = pa.concat_tables(self._entries)
        return found.filter(pa.array(np.isin(found[POSITION].to_numpy(), positions)))

    def keep(self, positions: Int64Array) -> None:
        """Drop all other events, if they are many."""
        kept = np.isin(self.positions, positions)
        gone = int(self.sizes[~kept].sum())
        if gone <= max(self._slack, self.rows // 4):
            return
        self._duck.execute(f"CREATE OR REPLACE TABLE {self.table} AS {self.selected(positions, self._columns)}")
        self._entries = [self.entries(positions).combine_chunks()]
        self.positions, self.sizes = self.positions[kept], self.sizes[kept]

    def drop(self) -> None:
        self._duck.execute(f"DROP TABLE {self.table}")

    def selected(self, positions: Int64Array, columns: Iterable[str]) -> str:
        """Return the SQL for some columns of the quads of events."""
        names = ", ".join(f'"{name}"' for name in columns)
        return f"SELECT {names} FROM {self.table} WHERE {self._among(positions)}"

    def _among(self, positions: Int64Array) -> str:
        if not len(positions):
            return "false"
        first, last = int(positions[0]), int(positions[-1])
        between = f"position BETWEEN {first} AND {last}"
        here = np.searchsorted(self.positions, [first, last + 1])
        if here[1] - here[0] == len(positions):
            return between
        self._duck.register("chosen", pa.table({POSITION: positions}))
        return f"{between} AND position IN (SELECT position FROM chosen)"


Row: TypeAlias = tuple[str | None, ...]
Rows: TypeAlias = tuple[Row, ...]

_LIVE_TABLES = 4
"""Contents of windows that are tables at the same time: queries with the same windows run one after the other."""


@dataclass(frozen=True)
class PlannedQuery:
    """A query that is ready to run: its plan, and its static data."""

    plan: WindowPlan
    static: StaticTable | None = None


class WindowEvaluator:
    """Evaluates queries in the engine of a partition. An answer is computed once in a batch."""

    def __init__(
        self, duck: duckdb.DuckDBPyConnection, stored: Callable[[str], StreamTable], limits: WindowLimits
    ) -> None:
        self._duck, self._stored, self.limits = duck, stored, limits
        self._answers: dict[object, Rows] = {}
        self._tables: dict[object, str] = {}
        self._count = 0

    def answer(self, asked: PlannedQuery, view: WindowView) -> Rows:
        """Return the solutions, in a fixed order. Raises QueryLimit for a query that takes too much time or memory, or
        has too many solutions."""
        sql = asked.plan.sql(view.instant.moment)
        key = sql, asked.static, view.key
        if key not in self._answers:
            self._answers[key] = self._evaluate(asked, sql, view)
        return self._answers[key]

    def forget(self) -> None:
        """Drop the answers and tables of a batch."""
        self._answers = {}
        while self._tables:
            self._drop()

    def _evaluate(self, asked: PlannedQuery, sql: str, view: WindowView) -> Rows:
        try:
            with CpuLimit(self._duck, self.limits.cpu_seconds):
                self._prepare(asked, view)
                found = self._duck.execute(sql).fetchmany(self.limits.rows + 1)
        except LIMIT_ERRORS:
            message = f"it takes more than {self.limits.cpu_seconds:g} s of CPU time, or {WINDOW_MEMORY}"
            raise QueryLimit(message) from None
        except duckdb.Error as error:
            raise QueryLimit(f"the engine does not get through it: {error}") from error
        if len(found) > self.limits.rows:
            raise QueryLimit(f"its answer has more than {self.limits.rows} solutions")
        width = len(asked.plan.names)
        return tuple(row[:width] for row in found)

    def _prepare(self, asked: PlannedQuery, view: WindowView) -> None:
        for number, (clause, content) in enumerate(zip(asked.plan.windows, view.contents, strict=True)):
            table = self._table(asked.plan, clause.stream, content)
            self._duck.execute(f"CREATE OR REPLACE TEMP VIEW window_{number} AS FROM {table}")
        if asked.static is not None:
            asked.static.show()

    def _table(self, plan: WindowPlan, stream: str, content: WindowContent) -> str:
        """Return the table of the content of a window, in order of position, so that nothing depends on how the content
        came together."""
        key = stream, plan.columns, content.key
        table = self._tables.pop(key, None) or self._create_table(plan, stream, content)
        # The oldest goes first, so that none goes which the same query is about to read.
        self._tables[key] = table
        while len(self._tables) > max(_LIVE_TABLES, len(plan.windows)):
            self._drop()
        return table

    def _create_table(self, plan: WindowPlan, stream: str, content: WindowContent) -> str:
        self._count += 1
        table = f"shown_{self._count}"
        selected = self._stored(stream).selected(content.positions, sorted(plan.columns) or ["position"])
        only = selected.replace("SELECT", "SELECT DISTINCT", 1) if plan.triples else selected
        self._duck.execute(f"CREATE TEMP TABLE {table} AS {only}")
        return table

    def _drop(self) -> None:
        self._duck.execute(f"DROP TABLE {self._tables.pop(next(iter(self._tables)))}")


class WindowedStream:
    """A stream of a partition: its events, and their timelines by both clocks."""

    def __init__(self, duck: duckdb.DuckDBPyConnection, table: str, slack: int) -> None:
        self.stored = StreamTable(duck, table, slack)
        self.timelines = {time: StreamTimeline() for time in TimeDomain}

    def add(self, entries: pa.Table, arrivals: Int64Array) -> ArrivedEvents:
        """Add events in order of position, with their arrival times."""
        sizes = pc.add(pc.count_substring(entries["text"], "\n"), 1).to_numpy().astype(np.int64)
        times, received = (entries[name].to_numpy() for name in ("time", "received"))
        arrived = ArrivedEvents(entries["position"].to_numpy(), sizes, arrivals, times, received)
        self.stored.add(entries, sizes)
        for time, timeline in self.timelines.items():
            timeline.add(arrived.by(time))
        return arrived

    def keep(self, needed: Iterable[TimedEvents]) -> None:
        """Drop the events that no query needs."""
        positions = union_positions(needed)
        self.stored.keep(positions)
        for timeline in self.timelines.values():
            timeline.keep(self.stored.positions)

    def kept(self, needed: Iterable[TimedEvents]) -> tuple[pa.Table, list[list[int]]]:
        """Return the original events that are needed, and pairs of position and arrival time of those that arrived at
        another time than they were received."""
        entries = self.stored.entries(union_positions(needed))
        known = self.timelines[TimeDomain.ARRIVAL].events
        order = np.argsort(known.positions)
        places = order[np.searchsorted(known.positions[order], entries["position"].to_numpy())]
        moved = known.moments[places] != entries["received"].to_numpy()
        pairs = np.stack([known.positions[places][moved], known.moments[places][moved]], axis=1)
        return entries, pairs.tolist()


def union_positions(needed: Iterable[TimedEvents]) -> Int64Array:
    """Return the positions of all events, each once, in order."""
    return np.unique(np.concatenate([np.empty(0, np.int64), *(each.positions for each in needed)]))
