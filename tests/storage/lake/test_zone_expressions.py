"""Zone expressions: DuckDB finds the zone of each row where the layout does; test_spark_engine.py does it for Spark."""

from __future__ import annotations

from itertools import product

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings

from tests.storage.lake.layouts import ODD, ORDERS, STEPS, Step, after
from tests.storage.lake.terms import IRIS, OBJECTS, place, rows_of
from triplewire.sparql import explode, to_sql
from triplewire.storage.lake.keys import find_transformation, row_points, term_key
from triplewire.storage.lake.zones import below_expression, zone_expression

QUADS = [(*iris, found) for iris, found in zip(product(IRIS, IRIS, IRIS), OBJECTS * 5, strict=False)]


@pytest.fixture(scope="module")
def quads() -> pa.Table:
    with duckdb.connect() as duck:
        duck.register("entries", rows_of(QUADS))
        return pa.table(duck.sql(to_sql(explode("entries"), "duckdb"))).sort_by("position")


@given(STEPS, ORDERS)
@settings(max_examples=40, deadline=None)
def test_rows_lie_where_the_map_says(quads: pa.Table, steps: list[Step], order: str) -> None:
    found = after(steps, order)
    with duckdb.connect() as duck:
        duck.register("quads", quads)
        rows = duck.sql(
            f"SELECT {to_sql(zone_expression(found, 'quads'), 'duckdb')} FROM quads ORDER BY position"
        ).fetchall()
    assert [zone for (zone,) in rows] == [found.locate(found.placed(place(quad))) for quad in QUADS]


@pytest.mark.parametrize("order", ["none", "prefix", "reversed"])
def test_every_bound_parts_every_object(quads: pa.Table, order: str) -> None:
    way = find_transformation(order)
    bounds = [
        *ODD,
        *(way.of_key(term_key(each)) for each in OBJECTS),
        "",
        "#fff0000000000001",
        "$ffffffffffffffff\U0010ffff",
    ]
    columns = ", ".join(to_sql(below_expression("object", bound, way), "duckdb") for bound in bounds)
    with duckdb.connect() as duck:
        duck.register("quads", quads)
        rows = duck.sql(f"SELECT {columns} FROM quads ORDER BY position").fetchall()
    for row, quad in zip(rows, QUADS, strict=True):
        assert list(row) == [way.of_key(term_key(quad[3])) < bound for bound in bounds]


def test_keys_of_rows_are_those_of_quads(quads: pa.Table) -> None:
    assert row_points(quads) == [place(quad) for quad in QUADS]
