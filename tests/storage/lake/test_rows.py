"""Rows are what the SQL that defines quads makes of the same entries, in the order of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage.lake.test_delta import entries
from triplewire.model import Event, EventHeaders
from triplewire.model.terms import XSD
from triplewire.sparql import explode, to_sql
from triplewire.storage.lake.data_files import QUADS, QUICK, SMALL, SORTED, FileWriter, write_durably
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch
from triplewire.storage.lake.rows import TermFacets, quad_rows

NUMBERS = ("0", "-0", "7", "+7", "007", "-12.50", "5.", ".5", "1e3", "1E-07", "9" * 15, "9" * 30, "1e400", "-1e400")
ODD = ("", " 7", "7 ", "seven", "INF", "-INF", "+INF", "NaN", "0x10", "1_000", "\\t", "é", "1e", "--1", "12345678901.5")
TIMES = (
    "2026-11-01T00:00:00Z",
    "2026-11-01T00:00:00.5Z",
    "2026-11-01T23:59:59.123456Z",
    "2026-11-01T23:59:59.1234567Z",
    "2026-12-31T12:00:00",
    "2026-11-31T12:00:00Z",
    "2024-02-29T12:00:00Z",
    "2023-02-29T12:00:00Z",
    "2026-11-01T24:00:00Z",
    "2026-11-01T10:00:60Z",
    "2026-11-01T10:00:00+05:30",
    "2026-11-01T10:00:00-14:00",
    "1969-12-31T23:59:59.999Z",
    "0001-01-01T00:00:00Z",
    "-0044-03-15T00:00:00Z",
    "12026-01-01T00:00:00Z",
    "2026-11-01",
    "2026-13-01T00:00:00Z",
)
DATATYPES = ("double", "decimal", "integer", "float", "long", "unsignedByte", "dateTime", "date", "boolean", "string")
OBJECTS = (
    "<http://example.org/a>",
    "<http://example.org/\U0001f600>",
    "_:b0",
    "<<( <urn:a> <urn:b> <urn:c> )>>",
    '"plain"',
    '""',
    '"with \\" a quote"',
    '"chaud"@fr',
    '"chaud"@fr-CA',
    '"an \\" in it"@en',
    '"x"^^<urn:own>',
    f'"^^<{XSD}double>"',
    *(f'"{lexical}"^^<{XSD}{name}>' for lexical in (*NUMBERS, *ODD, *TIMES) for name in DATATYPES),
)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def by_sql(duck: duckdb.DuckDBPyConnection, given_entries: pa.Table) -> pa.Table:
    duck.register("entries", given_entries)
    exploded = to_sql(explode("entries", columns=tuple(QUADS.names)), "duckdb")
    return pa.table(duck.sql(f"SELECT * FROM ({exploded}) ORDER BY {SORTED}")).cast(QUADS)


def event(number: int, objects: Sequence[str], predicates: Sequence[str] = ("<urn:p>",)) -> Event:
    lines = [f"<urn:s{n % 3}>\t{predicates[n % len(predicates)]}\t{each}" for n, each in enumerate(objects)]
    source = None if number % 2 else f"urn:source:{number}"
    others = {"X-Number": f"{number} é"} if number % 3 == 1 else {}
    return Event(f"urn:e:{number}", "\n".join(lines), EventHeaders(source, time=number * 1_000, extensions=others))


def same(left: pa.Table, right: pa.Table) -> None:
    assert left.column_names == right.column_names
    for name in left.column_names:
        assert texts(left[name]) == texts(right[name]), name


def texts(column: pa.ChunkedArray) -> list[str | None]:
    """No NaN is equal to another, -0 is to be told from 0, and Python has not all times."""
    kind = pa.int64() if pa.types.is_timestamp(column.type) else column.type
    found: list[str | None] = column.cast(kind).cast(pa.string()).to_pylist()
    return found


def test_every_kind_of_object_is_typed_as_the_sql_types_it(duck: duckdb.DuckDBPyConnection) -> None:
    given_entries = entries(event(1, OBJECTS), event(2, OBJECTS[::-1]))
    same(quad_rows(given_entries, TermFacets(duck)).cast(QUADS), by_sql(duck, given_entries))


PREDICATES = ("<urn:p>", "<urn:q>", "<urn:a>", "<urn:é>", "<urn:\U0001f600>", "<urn:\uffee>")


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(OBJECTS[:40]), min_size=1, max_size=5),
            st.lists(st.sampled_from(PREDICATES), min_size=1, max_size=4),
        ),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_any_events_are_rows_in_the_order_of_a_file(
    duck: duckdb.DuckDBPyConnection, events: list[tuple[list[str], list[str]]], backwards: bool
) -> None:
    made = entries(*(event(number, *each) for number, each in enumerate(events)))
    shown = made.take(list(range(made.num_rows))[:: -1 if backwards else 1])
    same(quad_rows(shown, TermFacets(duck)).cast(QUADS), by_sql(duck, made))


def test_entries_in_pieces_and_slices_are_the_same_rows(duck: duckdb.DuckDBPyConnection) -> None:
    made = entries(*(event(number, OBJECTS[number : number + 5], PREDICATES) for number in range(20)))
    pieces = pa.concat_tables([made.slice(0, 7), made.slice(7)]).slice(3)
    same(quad_rows(pieces, TermFacets(duck)).cast(QUADS), by_sql(duck, made.slice(3)))


def test_more_predicates_than_two_bytes_count(duck: duckdb.DuckDBPyConnection) -> None:
    many = [f"<urn:p{number}>" for number in range(66_000)]
    made = entries(event(1, ["<urn:o>"] * len(many), many))
    found = quad_rows(made, TermFacets(duck))["predicate"].to_pylist()
    assert found == sorted(many)


@pytest.mark.parametrize("level", [QUICK, SMALL])
def test_a_file_reads_as_it_was_written(duck: duckdb.DuckDBPyConnection, tmp_path: Path, level: int) -> None:
    made = quad_rows(entries(event(1, OBJECTS, PREDICATES), event(2, OBJECTS[:9])), TermFacets(duck))
    path = tmp_path / "quads.parquet"
    assert write_durably(made, path, level) == path.stat().st_size
    read = pq.read_table(path)
    assert read.schema.equals(QUADS)
    same(read, made.cast(QUADS))
    same(pa.table(duck.read_parquet(str(path))).cast(QUADS), made.cast(QUADS))


def test_a_reader_that_is_not_ours_reads_the_files(duck: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    made = entries(event(1, OBJECTS, PREDICATES), event(2, OBJECTS[:9]))
    DeltaLake(tmp_path).commit(CommitBatch("q", 0, 2), [FileWriter(tmp_path).write(made)])
    columns = ", ".join(f'"{name}"' for name in QUADS.names)
    asked = QueryBuilder().register("quads", DeltaTable(tmp_path)).execute(f"SELECT {columns} FROM quads")
    found = pa.table(asked.read_all()).cast(QUADS).sort_by([(name, "ascending") for name in ("position", "quad")])
    same(found, by_sql(duck, made).sort_by([(name, "ascending") for name in ("position", "quad")]))
