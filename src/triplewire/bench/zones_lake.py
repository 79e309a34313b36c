"""The lake of `bench zones`: quads in a table of DuckDB, each with its zone, kept even by the pipeline's planner."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev

import pyarrow as pa

from triplewire.rdf import N_QUADS, decode
from triplewire.sparql import explode, to_sql
from triplewire.storage.lake.balance import BalanceSettings, ZoneLoad
from triplewire.storage.lake.data_files import connect_duckdb
from triplewire.storage.lake.keys import KEYED, QuadPoint, row_points
from triplewire.storage.lake.rebalancing import ZONE_SAMPLE, plan_rebalance
from triplewire.storage.lake.zones import ZoneLayout, zone_expression
from triplewire.storage.log.appending import entries_table

_EXPLODED = to_sql(explode("entries", KEYED), "duckdb")


class Explosion:
    """Bodies of events to rows of the table, as `store` makes them."""

    def __init__(self) -> None:
        self._duck = connect_duckdb()

    def rows(self, body: bytes) -> pa.Table:
        events = decode(body, N_QUADS)
        entries = [
            (at, "tweets", each.id, each.text, "bench", None, 0, 0, "application/n-quads", None)
            for at, each in enumerate(events)
        ]
        self._duck.register("entries", entries_table([entries]))
        return pa.table(self._duck.sql(_EXPLODED))


class ZonedLake:
    """Quads and their zones."""

    def __init__(self, settings: BalanceSettings) -> None:
        self.zones = ZoneLayout(order=settings.transformation)
        self.moved = 0
        """Quads that went from one zone to another."""
        self._settings = settings
        self._duck = connect_duckdb()

    def insert(self, rows: pa.Table) -> None:
        """Each quad goes to its zone."""
        self._duck.register("rows", rows)
        columns = ", ".join(KEYED)
        verb = "INSERT INTO quads" if self._has_table() else "CREATE TABLE quads AS"
        self._duck.execute(
            f"{verb} SELECT {columns}, {to_sql(zone_expression(self.zones), 'duckdb')} AS zone FROM rows"
        )
        self._duck.unregister("rows")

    def balance(self) -> None:
        """Follow the plan: quads of zones that go move to those that come in their place."""
        loads = self.loads()
        found = plan_rebalance(
            self.zones, {zone: ZoneLoad(count) for zone, count in loads.items()}, self._samples(), self._settings
        )
        gone = [zone.id for move in found.moves for zone in move.gone]
        self.zones = found.after
        if gone:
            self.moved += sum(loads.get(zone, 0) for zone in gone)
            zone = to_sql(zone_expression(self.zones), "duckdb")
            sql = f"UPDATE quads SET zone = {zone} WHERE zone IN (SELECT unnest($1))"
            self._duck.execute(sql, [gone])

    def loads(self) -> dict[str, int]:
        """Quads by zone. Zones without any are not there."""
        return dict(self._duck.execute("SELECT zone, count(*) FROM quads GROUP BY zone").fetchall())

    def _samples(self) -> dict[str, list[QuadPoint]]:
        """Some of the quads of each zone, in all as many as the pipeline looks at."""
        sql = f"SELECT * FROM quads USING SAMPLE reservoir({ZONE_SAMPLE} ROWS) REPEATABLE (7)"
        found = pa.table(self._duck.sql(sql))
        samples: dict[str, list[QuadPoint]] = {}
        for zone, point in zip(found["zone"].to_pylist(), row_points(found), strict=True):
            samples.setdefault(zone, []).append(self.zones.placed(point))
        return samples

    def _has_table(self) -> bool:
        return bool(self._duck.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'quads'").fetchall())


def deviation(loads: Sequence[float]) -> float:
    """The relative standard deviation of a sample, in per cent: with 32 zones, 566 where one has everything."""
    return 100 * stdev(loads) / mean(loads) if len(loads) > 1 and any(loads) else 0.0
