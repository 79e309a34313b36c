"""Hidings: instances of classes out of sight, found once and kept up as the lake grows.

Each query of somebody from whom classes are hidden asks for them at every scan. A row is a position and a node.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import duckdb

from triplewire.access import Sight
from triplewire.access.scopes import Scope
from triplewire.config import limits
from triplewire.lake.ports import Snapshot
from triplewire.lake.relations import parquet
from triplewire.query.intakes import Intake
from triplewire.sparql import to_sql
from triplewire.sparql.compile.sights import instances

_ONCE = "hidden_once"
_SOURCE = "stored"


@dataclass
class _Kept:
    """The instances of one scope of classes, up to a position."""

    table: str
    sql: str
    intake: Intake = field(default_factory=Intake)


class Hidings:
    """Of one connection. Those that were used least recently make room."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck
        self._kept: OrderedDict[Scope, _Kept] = OrderedDict()
        self._count = 0

    def of(self, sight: Sight, snapshot: Snapshot) -> str | None:
        """The table of those that are in a snapshot; None where no class is out of sight."""
        found = instances(sight, _SOURCE)
        if found is None:
            return None
        kept = self._found(sight.classes, to_sql(found, "duckdb"))
        self._catch_up(kept, snapshot)
        # Of an older version only what lies in that itself is known.
        return kept.table if kept.intake.holds(snapshot) else self._once(kept, snapshot)

    def _found(self, classes: Scope, sql: str) -> _Kept:
        if classes not in self._kept:
            self._count += 1
            self._kept[classes] = self._begin(_Kept(f"hidden_{self._count}", sql))
        self._kept.move_to_end(classes)
        if len(self._kept) > limits.HIDINGS:
            _, gone = self._kept.popitem(last=False)
            self._duck.execute(f"DROP TABLE {gone.table}")
        return self._kept[classes]

    def _begin(self, kept: _Kept) -> _Kept:
        kept.intake = Intake()
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE {kept.table} (position BIGINT, node VARCHAR)")
        return kept

    def _catch_up(self, kept: _Kept, snapshot: Snapshot) -> None:
        if not kept.intake.follows(snapshot):
            if snapshot.upto < kept.intake.upto:
                return
            self._begin(kept)
        while missing := kept.intake.missing(snapshot):
            portion = missing[0]
            self._duck.execute(f"INSERT INTO {kept.table} {_over(kept.sql, portion.relation)}")
            kept.intake.took(portion)

    def _once(self, kept: _Kept, snapshot: Snapshot) -> str:
        sql = _over(kept.sql, parquet(snapshot.paths)) if snapshot.paths else f"FROM {kept.table} WHERE false"
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE {_ONCE} AS {sql}")
        return _ONCE


def _over(sql: str, relation: str) -> str:
    """The query over one relation."""
    return f"WITH {_SOURCE} AS (SELECT * FROM {relation}) {sql}"
