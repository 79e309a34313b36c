"""Keys: the order of terms, held against numbers and times of Python, against DuckDB, and against the table."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage.lake.terms import IRIS, LITERALS, NUMBERS, OBJECTS, TIMES, TRIPLES, rows_of, typed
from triplewire.model.terms import parse_literal
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.keys import (
    bound_ordinal,
    double_at,
    double_ordinal,
    number_key,
    object_key,
    quad_point,
    row_points,
    term_key,
    time_key,
)


def classes(term: str) -> int:
    return [term in group for group in (LITERALS, NUMBERS, TIMES, (*IRIS, *TRIPLES))].index(True)


def exact(term: str) -> Decimal:
    """The value in Python's decimals; there NaN is put last."""
    lexical = parse_literal(term).lexical.replace("INF", "Infinity")
    return Decimal("Infinity") if lexical in ("NaN", "1e999") else Decimal(lexical)


def instant(term: str) -> datetime:
    lexical = parse_literal(term).lexical
    found = datetime.fromisoformat(lexical)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def test_literals_then_numbers_then_times_then_iris() -> None:
    found = [classes(term) for term in sorted(OBJECTS, key=term_key)]
    assert found == sorted(found)


def test_numbers_lie_as_numbers_whatever_their_type() -> None:
    values = [exact(term) for term in sorted(NUMBERS, key=term_key) if "float" not in term]
    assert values == sorted(values), "exact values never fall, though doubles of long ones are equal"
    assert sorted(NUMBERS, key=term_key)[-1] == typed("NaN", "double")
    assert [term_key(typed(each, "double"))[:17] for each in ("-0.0", "1e3")] == [number_key(0), number_key(1000)]


@pytest.mark.parametrize("left", ["123456789012345678901234567890.1", "9007199254740993"])
def test_numbers_too_long_for_a_double_stay_apart(left: str) -> None:
    lexical = [left, left[:-1] + "2"]
    assert len({term_key(typed(each, "decimal")) for each in lexical}) == 2
    assert len({term_key(typed(each, "decimal"))[:17] for each in lexical}) == 1


def test_times_lie_as_instants() -> None:
    common = [term for term in TIMES if "-0044" not in term and "12026" not in term]
    found = [instant(term) for term in sorted(common, key=term_key)]
    assert found == sorted(found)
    ordered = sorted(TIMES, key=term_key)
    assert ("-0044" in ordered[0], "12026" in ordered[-1]) == (True, True)


def test_texts_lie_by_code_points_and_not_by_their_halves_in_utf_16() -> None:
    assert sorted(['"𝄞"', '"\uffee"', '"z"'], key=term_key) == ['"z"', '"\uffee"', '"𝄞"']


def test_what_is_no_number_is_a_plain_literal() -> None:
    for term in (typed("abc", "integer"), typed("2026-13-45", "date"), typed("1", "gYear"), '"1"', *TRIPLES):
        assert term_key(term) == term


def test_keys_of_terms_are_those_of_rows(tmp_path: Path) -> None:
    quads = [(f"<urn:e{number}>", "<urn:s>", "<urn:p>", term) for number, term in enumerate(OBJECTS)]
    written = FileWriter(tmp_path).write(rows_of(quads))
    rows = pq.read_table(tmp_path / written.path).sort_by("position")
    assert row_points(rows) == [quad_point(*quad) for quad in quads]


def test_duckdb_orders_the_columns_as_keys(tmp_path: Path) -> None:
    quads = [("<urn:e>", "<urn:s>", "<urn:p>", term) for term in OBJECTS]
    written = FileWriter(tmp_path).write(rows_of(quads))
    found = duckdb.execute(
        """SELECT object FROM read_parquet(?) ORDER BY CASE
            WHEN object_number IS NOT NULL THEN 1 WHEN object_time IS NOT NULL THEN 2 WHEN object[1] = '"' THEN 0 ELSE 3
        END, object_number + 0.0, object_time, object""",
        [str(tmp_path / written.path)],
    ).fetchall()
    assert [term for (term,) in found] == sorted(OBJECTS, key=term_key)


DOUBLES = st.one_of(st.floats(width=64), st.sampled_from([0.0, -0.0, math.inf, -math.inf, 1.0, -1.0, 5e-324]))


@given(DOUBLES, DOUBLES)
@settings(max_examples=200, deadline=None)
def test_doubles_lie_as_doubles(left: float, right: float) -> None:
    if math.isnan(left) or math.isnan(right):
        assert (number_key(left) > number_key(right)) == (math.isnan(left) and not math.isnan(right))
    else:
        assert (number_key(left) < number_key(right)) == (left < right)
        assert double_at(double_ordinal(left)) == left


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3))
@settings(max_examples=100, deadline=None)
def test_instants_lie_as_instants(micros: int, step: int) -> None:
    other = min(max(micros + step, -(2**63)), 2**63 - 1)
    assert (time_key(micros) < time_key(other)) == (micros < other)
    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=step) == instant_of(time_key(step))


def instant_of(found: str) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(found[1:], 16) - 2**63)


BOUNDS = st.text(st.sampled_from("08af:g/~\U0010ffff"), max_size=18)


@given(BOUNDS, st.sampled_from([0.0, -1.5, 3.0, math.inf, math.nan, 1e300]), st.sampled_from(['"a"', '"z"']))
@settings(max_examples=300, deadline=None)
def test_any_text_bounds_numbers(bound: str, value: float, text: str) -> None:
    place, rest = bound_ordinal("#" + bound)
    assert ((double_ordinal(value), text) < (place, rest)) == (object_key(text, value, None) < "#" + bound)


def test_every_pair_of_terms_is_apart() -> None:
    ordered: list[str] = sorted(OBJECTS, key=term_key)
    same: Callable[[str, str], bool] = lambda left, right: term_key(left) == term_key(right)  # noqa: E731
    assert not any(same(left, right) for left, right in pairwise(ordered))
