"""Row-level security over the lake: relations of visible quads and events, and the hidden instances of classes.

A query is compiled as for everybody and then reads these relations instead of `quads` and `events`. Counts, paths and
negation see nothing else. Hidden instances are found once and kept up as the lake grows; a row is a position and a
node.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Final

import duckdb

from triplewire.history.snapshots import HEADERS, SnapshotProgress
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

HIDINGS: Final = 8
"""Sets of classes, hidden from some who ask, whose instances a process of queries keeps: some 100 bytes for each."""


# A query is compiled as for everybody, and then reads these. So whatever it does, counts and paths and what is not
# there included, it does to what is in sight.

_ROW = "w"
"""The alias of a stored row."""


@dataclass(frozen=True)
class VisibleRelations:
    """What somebody sees, for one engine. `hidden` names the relation of instances out of sight, if there are any."""

    sight: Visibility
    dialect: Dialect
    hidden: str | None = None

    def quads(self, stored: str) -> str:
        """Of a relation that stands in FROM, all quads in sight."""
        return f"SELECT {_ROW}.* FROM {self._seen_of(stored)}"

    def events(self, stored: str, whole: str) -> str:
        """Of a relation, the headers of all events in sight; `whole` has all quads of these, wherever they lie."""
        first = every(equal(column(_ROW, "quad"), number(0)), event_is_visible(self.sight, _ROW))
        found = f"SELECT {HEADERS} FROM {stored} AS {_ROW} WHERE {to_sql(first, self.dialect)}"
        if self.sight.leaves_events:
            return found
        return f"{found} AND position IN (SELECT {_ROW}.position FROM {self._seen_of(whole)})"

    def _seen_of(self, stored: str) -> str:
        """What stands in FROM, and the condition."""
        joins = "".join(self._without(end) for end in ("subject", "object")) if self.hidden else ""
        return f"{stored} AS {_ROW}{joins} WHERE {to_sql(quad_is_visible(self.sight, _ROW), self.dialect)}"

    def _without(self, end: str) -> str:
        hidden = f"{_ROW}_{end}"
        return f" ANTI JOIN {self.hidden} AS {hidden} ON {to_sql(end_is_hidden(_ROW, end, hidden), self.dialect)}"


def narrow_to_visible(compiled: CompiledQuery, sight: Visibility) -> CompiledQuery:
    """The query, with what the sight says of the rows that its scans can use."""
    return replace(compiled, scan_predicates=tuple(_narrow_scan(each, sight) for each in compiled.scan_predicates))


def _narrow_scan(reading: ScanPredicate, sight: Visibility) -> ScanPredicate:
    known = tuple(visibility_bounds(sight, reading.relation))
    return replace(reading, alternatives=tuple((*way, *known) for way in reading.alternatives)) if known else reading


def hidden_instances_query(sight: Visibility, dialect: Dialect) -> CompiledQuery | None:
    """The query for instances out of sight; None where no class is."""
    found = hidden_instances(sight)
    if found is None:
        return None
    return CompiledQuery("select", (), to_sql(found, dialect), scan_predicates=find_scan_predicates((found,)))


def visible_scan(sight: Visibility) -> ScanPredicate:
    """All quads that may be in sight, as a scan."""
    return ScanPredicate("quads", "whole", (tuple(visibility_bounds(sight, "quads")),))


# Hidings: instances of classes out of sight, found once and kept up as the lake grows.
#
# Each query of somebody from whom classes are hidden asks for them at every scan. A row is a position and a node.

_ONCE = "hidden_once"
_SOURCE = "stored"


@dataclass
class _ScopeInstances:
    """The instances of one scope of classes, up to a position."""

    table: str
    sql: str
    intake: SnapshotProgress = field(default_factory=SnapshotProgress)


class HiddenInstances:
    """Of one connection. Those that were used least recently make room."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck
        self._kept: OrderedDict[PatternSet, _ScopeInstances] = OrderedDict()
        self._count = 0

    def of(self, sight: Visibility, snapshot: Snapshot) -> str | None:
        """The table of those that are in a snapshot; None where no class is out of sight."""
        found = hidden_instances(sight, _SOURCE)
        if found is None:
            return None
        kept = self._found(sight.classes, to_sql(found, "duckdb"))
        self._catch_up(kept, snapshot)
        # Of an older version only what lies in that itself is known.
        return kept.table if kept.intake.holds(snapshot) else self._once(kept, snapshot)

    def _found(self, classes: PatternSet, sql: str) -> _ScopeInstances:
        if classes not in self._kept:
            self._count += 1
            self._kept[classes] = self._begin(_ScopeInstances(f"hidden_{self._count}", sql))
        self._kept.move_to_end(classes)
        if len(self._kept) > HIDINGS:
            _, gone = self._kept.popitem(last=False)
            self._duck.execute(f"DROP TABLE {gone.table}")
        return self._kept[classes]

    def _begin(self, kept: _ScopeInstances) -> _ScopeInstances:
        kept.intake = SnapshotProgress()
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE {kept.table} (position BIGINT, node VARCHAR)")
        return kept

    def _catch_up(self, kept: _ScopeInstances, snapshot: Snapshot) -> None:
        if not kept.intake.follows(snapshot):
            if snapshot.upto < kept.intake.upto:
                return
            self._begin(kept)
        while missing := kept.intake.missing(snapshot):
            portion = missing[0]
            self._duck.execute(f"INSERT INTO {kept.table} {_read_from(kept.sql, portion.relation)}")
            kept.intake.took(portion)

    def _once(self, kept: _ScopeInstances, snapshot: Snapshot) -> str:
        sql = (
            _read_from(kept.sql, parquet_relation(snapshot.paths))
            if snapshot.paths
            else f"FROM {kept.table} WHERE false"
        )
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE {_ONCE} AS {sql}")
        return _ONCE


def _read_from(sql: str, relation: str) -> str:
    """The query over one relation."""
    return f"WITH {_SOURCE} AS (SELECT * FROM {relation}) {sql}"
