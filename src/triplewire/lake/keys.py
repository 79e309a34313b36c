"""Keys: a text for each term, so that the order of these texts by code points is the order of the terms.

An IRI and most literals are their own keys. A number is `#`, the place of its double among all doubles as sixteen hex
digits, and its text; a time is `$`, its microseconds likewise, and its text. So other literals come first, then
numbers, then times, then IRIs. Which objects are numbers and times is what the columns `object_number` and
`object_time` of the table say.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache, lru_cache

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from triplewire.lake.relations import engine
from triplewire.sparql import facets_of, to_sql

DIMENSIONS = ("graph", "subject", "predicate", "object")
"""The sides of the space, each a column of the table."""

KEYED = (*DIMENSIONS, "object_number", "object_time")
"""The columns that the keys of a row are made of."""

NUMBER, TIME = "#", "$"

_DIGITS = 16
_SIGN = 1 << 63
_ALL = (1 << 64) - 1


def key(term: str) -> str:
    """The key of a term in canonical N-Triples text, as the key of a row of the table that has it as its object."""
    if not (term.startswith('"') and term.endswith(">")):
        return term
    number, micros = _facets(term)
    return object_key(term, number, micros)


def object_key(text: str, number: float | None, micros: int | None) -> str:
    """The key of an object by its columns: its text, its number, and its time in microseconds since 1970."""
    if number is not None:
        return number_key(number) + text
    return text if micros is None else time_key(micros) + text


def number_key(value: float) -> str:
    """What the keys of all numbers with this double start with. There is one zero, and NaN is the last number."""
    return f"{NUMBER}{ordinal(value):016x}"


def time_key(micros: int) -> str:
    """What the keys of all times at this instant start with."""
    return f"{TIME}{micros + _SIGN:016x}"


def ordinal(value: float) -> int:
    """The place of a double among all doubles."""
    if value != value:
        return ordinal(float("inf")) + 1
    (bits,) = struct.unpack(">Q", struct.pack(">d", value + 0.0))
    return int(bits) ^ (_ALL if bits & _SIGN else _SIGN)


def double(place: int) -> float:
    """The double at a place; NaN where there is none."""
    bits = place ^ (_SIGN if place & _SIGN else _ALL)
    (value,) = struct.unpack(">d", struct.pack(">Q", bits))
    return float(value)


def micros_at(place: int) -> int:
    """The microseconds since 1970 of a time at a place among all times."""
    return place - _SIGN


def place_of(bound: str) -> tuple[int, str]:
    """What a bound among numbers or among times says: a key of these is under it if its place is under the one that
    is given, or if it is this very place and its text is under the text that is given."""
    digits = bound[1 : 1 + _DIGITS]
    if len(digits) == _DIGITS and all(each in "0123456789abcdef" for each in digits):
        return int(digits, 16), bound[1 + _DIGITS :]
    low, high = 0, _ALL + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if f"{middle:016x}" < digits else (low, middle)
    return low, ""


def term_of(found: str) -> str:
    """The term of a key."""
    return found[1 + _DIGITS :] if found[:1] in (NUMBER, TIME) else found


Point = tuple[str, str, str, str]
"""A place in the space: the keys of a quad's graph, subject, predicate and object."""


def point(graph: str, subject: str, predicate: str, object: str) -> Point:
    """The place of a quad."""
    return graph, subject, predicate, key(object)


def points(rows: pa.Table) -> list[Point]:
    """The places of rows of the table, of which the columns `KEYED` are needed."""
    texts, numbers, times = (rows[name] for name in KEYED[3:])
    micros = pc.cast(times, pa.int64()).to_pylist()
    objects = map(object_key, texts.to_pylist(), numbers.to_pylist(), micros)
    plain = (rows[name].to_pylist() for name in KEYED[:3])
    return list(zip(*plain, objects, strict=True))


# The engine that makes the table's columns says what a literal is, so that keys of terms and of rows cannot differ.
@lru_cache(maxsize=4096)
def _facets(term: str) -> tuple[float | None, int | None]:
    found: Sequence[tuple[float | None, int | None]] = _engine().cursor().execute(_sql(), [term]).fetchall()
    return found[0]


@cache
def _sql() -> str:
    made = facets_of(exp.column("term", "t"), ("number", "time"))
    micros = exp.Anonymous(this="EPOCH_US", expressions=[made["time"]])
    return (
        f"SELECT {to_sql(made['number'], 'duckdb')}, {to_sql(micros, 'duckdb')} FROM (SELECT $1::VARCHAR AS term) AS t"
    )


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    return engine()
