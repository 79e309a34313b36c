"""Row-level security over the lake: relations of visible quads and events, and the hidden instances of classes.

A query is compiled as for everybody and then reads these relations instead of `quads` and `events`. Counts, paths and
negation see nothing else. Hidden instances are found once and kept up as the lake grows; a row is a position and a
node.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import duckdb

from triplewire.history.snapshots import HEADERS, SnapshotProgress
from triplewire.model.cache import BoundedCache
from triplewire.security import Visibility
from triplewire.security.visibility import PatternSet
from triplewire.sparql import CompiledQuery, Dialect, to_sql
from triplewire.sparql.compiler.scan_analysis import find_scan_predicates
from triplewire.sparql.compiler.scan_predicates import ScanPredicate
from triplewire.sparql.compiler.visibility import (
    end_is_hidden,
    event_is_visible,
    hidden_instances,
    quad_is_visible,
    visibility_bounds,
)
from triplewire.sparql.sql import column, equal, every, number
from triplewire.storage.lake.data_files import parquet_relation
from triplewire.storage.lake.ports import Snapshot

HIDDEN_CLASS_SETS: Final = 8
"""Sets of hidden classes whose instances a query process keeps: some 100 bytes for each instance."""


_ROW = "w"
"""The alias of a stored row."""


@dataclass(frozen=True)
class VisibleRelations:
    """Relations of visible quads and events. `hidden` names the relation of hidden instances, if there are any."""

    visibility: Visibility
    dialect: Dialect
    hidden: str | None = None

    def quads(self, stored: str) -> str:
        """Return the visible quads of a relation that stands in FROM."""
        return f"SELECT {_ROW}.* FROM {self._visible(stored)}"

    def events(self, stored: str, whole: str) -> str:
        """Return the headers of the visible events of a relation; `whole` has all their quads, in whatever files."""
        first = every(equal(column(_ROW, "quad"), number(0)), event_is_visible(self.visibility, _ROW))
        sql = f"SELECT {HEADERS} FROM {stored} AS {_ROW} WHERE {to_sql(first, self.dialect)}"
        if self.visibility.leaves_events:
            return sql
        return f"{sql} AND position IN (SELECT {_ROW}.position FROM {self._visible(whole)})"

    def _visible(self, stored: str) -> str:
        """Return the text after FROM: the relation and its condition."""
        joins = "".join(self._without(end) for end in ("subject", "object")) if self.hidden else ""
        return f"{stored} AS {_ROW}{joins} WHERE {to_sql(quad_is_visible(self.visibility, _ROW), self.dialect)}"

    def _without(self, end: str) -> str:
        hidden = f"{_ROW}_{end}"
        return f" ANTI JOIN {self.hidden} AS {hidden} ON {to_sql(end_is_hidden(_ROW, end, hidden), self.dialect)}"


def narrow_to_visible(compiled: CompiledQuery, visibility: Visibility) -> CompiledQuery:
    """Add the bounds of the visibility to the scans of a query."""
    return replace(compiled, scan_predicates=tuple(_narrow_scan(each, visibility) for each in compiled.scan_predicates))


def _narrow_scan(reading: ScanPredicate, visibility: Visibility) -> ScanPredicate:
    known = tuple(visibility_bounds(visibility, reading.relation))
    return replace(reading, alternatives=tuple((*way, *known) for way in reading.alternatives)) if known else reading


def hidden_instances_query(visibility: Visibility, dialect: Dialect) -> CompiledQuery | None:
    """Return the query for hidden instances, None if no class is hidden."""
    query = hidden_instances(visibility)
    if query is None:
        return None
    return CompiledQuery("select", (), to_sql(query, dialect), scan_predicates=find_scan_predicates((query,)))


def visible_scan(visibility: Visibility) -> ScanPredicate:
    """Return a scan of all quads that may be visible."""
    return ScanPredicate("quads", "whole", (tuple(visibility_bounds(visibility, "quads")),))


_ONCE = "hidden_once"
_SOURCE = "stored"


@dataclass
class _ScopeInstances:
    """The hidden instances of one set of classes, up to a position."""

    table: str
    sql: str
    progress: SnapshotProgress = field(default_factory=SnapshotProgress)


class HiddenInstances:
    """Tables of hidden instances in one connection, least recently used first out."""

    def __init__(self, duck: duckdb.DuckDBPyConnection, limit: int = HIDDEN_CLASS_SETS) -> None:
        self._duck = duck
        self._scopes = BoundedCache[PatternSet, _ScopeInstances](limit)
        self._count = 0

    def find_table(self, visibility: Visibility, snapshot: Snapshot) -> str | None:
        """Return the table of the hidden instances in a snapshot, None if no class is hidden."""
        query = hidden_instances(visibility, _SOURCE)
        if query is None:
            return None
        scope = self._scope(visibility.classes, to_sql(query, "duckdb"))
        self._catch_up(scope, snapshot)
        # An older version needs a table of its own.
        return scope.table if scope.progress.holds(snapshot) else self._once(scope, snapshot)

    def _scope(self, classes: PatternSet, sql: str) -> _ScopeInstances:
        if (scope := self._scopes.get(classes)) is None:
            self._count += 1
            scope = self._reset(_ScopeInstances(f"hidden_{self._count}", sql))
            for evicted in self._scopes.put(classes, scope):
                self._duck.execute(f"DROP TABLE {evicted.table}")
        return scope

    def _reset(self, scope: _ScopeInstances) -> _ScopeInstances:
        scope.progress = SnapshotProgress()
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE {scope.table} (position BIGINT, node VARCHAR)")
        return scope

    def _catch_up(self, scope: _ScopeInstances, snapshot: Snapshot) -> None:
        if not scope.progress.follows(snapshot):
            if snapshot.position < scope.progress.position:
                return
            self._reset(scope)
        while missing := scope.progress.missing(snapshot):
            portion = missing[0]
            self._duck.execute(f"INSERT INTO {scope.table} {_read_from(scope.sql, portion.relation)}")
            scope.progress.mark_done(portion)

    def _once(self, scope: _ScopeInstances, snapshot: Snapshot) -> str:
        sql = (
            _read_from(scope.sql, parquet_relation(snapshot.paths))
            if snapshot.paths
            else f"FROM {scope.table} WHERE false"
        )
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE {_ONCE} AS {sql}")
        return _ONCE


def _read_from(sql: str, relation: str) -> str:
    return f"WITH {_SOURCE} AS (SELECT * FROM {relation}) {sql}"
