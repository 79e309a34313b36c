"""Backdrops: what a query reads that is in no window, as a table of the place."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import pyarrow as pa


@dataclass(frozen=True)
class Backdrop:
    """Of one query, loaded once."""

    duck: duckdb.DuckDBPyConnection
    table: str

    @classmethod
    def of(cls, duck: duckdb.DuckDBPyConnection, table: str, quads: pa.Table) -> Backdrop:
        duck.register("loading", quads)
        duck.execute(f"CREATE OR REPLACE TABLE {table} AS FROM loading")
        duck.unregister("loading")
        return cls(duck, table)

    def show(self) -> None:
        """As the relations `quads` and `events`."""
        self.duck.execute(f"CREATE OR REPLACE TEMP VIEW quads AS FROM {self.table}")
        self.duck.execute("CREATE OR REPLACE TEMP VIEW events AS FROM quads WHERE quad = 0")

    def drop(self) -> None:
        self.duck.execute(f"DROP TABLE IF EXISTS {self.table}")
