"""Row-level security over the lake: conditions on rows, relations of visible quads and events, hidden instances.

The conditions say of rows what `security` says of the text of one event. A query is compiled as for everybody and then
reads these relations instead of `quads` and `events`: counts, paths and negation see nothing else. Instances of hidden
classes are a relation of their own, `position` and `node`, because they must be known before any row of their events
is read; they are found once and kept up as the lake grows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import duckdb
from sqlglot import exp

from triplewire.history.snapshots import HEADERS, SnapshotProgress
from triplewire.model.cache import BoundedCache
from triplewire.model.terms import RDF_TYPE
from triplewire.security.visibility import ALL, TRIPLE_TERM, PatternSet, Visibility, split_patterns
from triplewire.sparql import CompiledQuery, Dialect, to_sql
from triplewire.sparql.compiler.scan_analysis import find_scan_predicates
from triplewire.sparql.compiler.scan_predicates import (
    ColumnBound,
    ScanPredicate,
    SqlConstant,
    point_intervals,
    prefix_interval,
)
from triplewire.sparql.sql import Sql, among, call, column, equal, every, negate, number, some, text, truth
from triplewire.storage.lake.data_files import parquet_relation
from triplewire.storage.lake.ports import Snapshot

_EVENT_COLUMNS = ("stream", "graph")


def event_is_visible(visibility: Visibility, alias: str) -> Sql:
    """Return the condition that the stream and graph of a row are visible."""
    scopes = zip(_EVENT_COLUMNS, (visibility.streams, visibility.graphs), strict=True)
    return every(*(in_scope(scope, column(alias, name)) for name, scope in scopes))


def quad_is_visible(visibility: Visibility, alias: str) -> Sql:
    """Return the condition that a row of `quads` is visible, unless its subject or object is a hidden instance."""
    conditions = [event_is_visible(visibility, alias)]
    if not visibility.leaves_events:
        conditions.append(in_scope(visibility.predicates, column(alias, "predicate")))
        conditions.append(negate(call("TW_STARTS", column(alias, "object"), text(TRIPLE_TERM))))
    return every(*conditions)


def end_is_hidden(alias: str, end: str, hidden: str) -> Sql:
    """Return the condition that the subject or object of a row is a hidden instance, for an ANTI JOIN, which takes half
    the time of NOT EXISTS."""
    at = equal(column(hidden, "position"), column(alias, "position"))
    return every(at, equal(column(hidden, "node"), column(alias, end)))


def hidden_instances(visibility: Visibility, source: str = "quads", alias: str = "hidden") -> exp.Select | None:
    """Return the relation of hidden instances, `position` and `node`; None if no class is hidden."""
    if visibility.classes.is_all:
        return None
    typed = equal(column(alias, "predicate"), text(RDF_TYPE))
    out = _out_of_scope(visibility.classes, column(alias, "object"))
    chosen = exp.select(column(alias, "position"), exp.alias_(column(alias, "subject"), "node"))
    return chosen.from_(exp.to_table(source, alias=alias)).where(every(typed, out)).distinct()


def in_scope(scope: PatternSet, value: Sql) -> Sql:
    return every(_covered(scope.allowed, value), negate(_covered(scope.denied, value)))


def visibility_bounds(visibility: Visibility, relation: str) -> Iterator[ColumnBound]:
    """Return intervals within which all visible rows of a relation lie."""
    scopes = {"stream": visibility.streams, "graph": visibility.graphs}
    if relation == "quads":
        scopes["predicate"] = visibility.predicates
    for name, scope in scopes.items():
        if scope.allowed != (ALL,):
            exact, starts = split_patterns(scope.allowed)
            known = point_intervals(SqlConstant("text", each) for each in sorted(exact))
            yield ColumnBound(name, (*known, *map(prefix_interval, starts)))


def _out_of_scope(scope: PatternSet, value: Sql) -> Sql:
    """Return the condition that a value is not in a scope. If only some values are denied it lists these, which lets a
    reader prune."""
    if scope.allowed == (ALL,):
        return _covered(scope.denied, value)
    return negate(in_scope(scope, value))


def _covered(patterns: tuple[str, ...], value: Sql) -> Sql:
    if patterns == (ALL,):
        return truth(True)
    exact, starts = split_patterns(patterns)
    listed = [among(value, sorted(exact))] if exact else []
    return some(*listed, *(call("TW_STARTS", value, text(each)) for each in starts)) if patterns else truth(False)


# Row-level security over the lake: relations of visible quads and events, and the hidden instances of classes.
#
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
