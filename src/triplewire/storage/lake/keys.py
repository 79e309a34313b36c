"""Sort keys: a text for each term, so that the order of keys by code points is the order of terms.

An IRI and most literals are their own keys. A number is `#`, the ordinal of its double among all doubles as sixteen
hex digits, and its text; a time is `$`, its microseconds likewise, and its text. So other literals come first, then
numbers, times and IRIs. The columns `object_number` and `object_time` of the table say which objects are numbers and
times.

A transformation is another order, for data whose terms share prefixes (EventCloud's upstream balancing). It spreads
terms that lie close together; a range of texts is then scattered. Numbers and times keep their order.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from triplewire.model.errors import InputError
from triplewire.sparql import facets_of, to_sql
from triplewire.sparql.sql import Sql, call, case, concat, every, negate, number, text
from triplewire.storage.lake.data_files import connect_duckdb

DIMENSIONS = ("graph", "subject", "predicate", "object")
"""The sides of the space, each a column of the table."""

KEYED = (*DIMENSIONS, "object_number", "object_time")
"""The columns that the keys of a row are made of."""

NUMBER, TIME = "#", "$"

_DIGITS = 16
_SIGN = 1 << 63
_ALL = (1 << 64) - 1


def term_key(term: str) -> str:
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
    """The prefix of keys of numbers with this double. There is one zero, and NaN is the last number."""
    return f"{NUMBER}{double_ordinal(value):016x}"


def time_key(micros: int) -> str:
    """The prefix of keys of times at this instant."""
    return f"{TIME}{micros + _SIGN:016x}"


def double_ordinal(value: float) -> int:
    """The ordinal of a double among all doubles."""
    if value != value:
        return double_ordinal(float("inf")) + 1
    (bits,) = struct.unpack(">Q", struct.pack(">d", value + 0.0))
    return int(bits) ^ (_ALL if bits & _SIGN else _SIGN)


def double_at(ordinal: int) -> float:
    """The double of an ordinal; NaN where there is none."""
    bits = ordinal ^ (_SIGN if ordinal & _SIGN else _ALL)
    (value,) = struct.unpack(">d", struct.pack(">Q", bits))
    return float(value)


def micros_at(ordinal: int) -> int:
    """The microseconds since 1970 of a time by its ordinal among all times."""
    return ordinal - _SIGN


def bound_ordinal(bound: str) -> tuple[int, str]:
    """A bound among numbers or times: a key is below it if its value is below the bound's value, or equal to it and its
    text is below the bound's text."""
    digits = bound[1 : 1 + _DIGITS]
    if len(digits) == _DIGITS and all(each in "0123456789abcdef" for each in digits):
        return int(digits, 16), bound[1 + _DIGITS :]
    low, high = 0, _ALL + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if f"{middle:016x}" < digits else (low, middle)
    return low, ""


QuadPoint = tuple[str, str, str, str]
"""A point of the space: the keys of a quad's graph, subject, predicate and object."""


def quad_point(graph: str, subject: str, predicate: str, object: str) -> QuadPoint:
    """The point of a quad."""
    return graph, subject, predicate, term_key(object)


def row_points(rows: pa.Table) -> list[QuadPoint]:
    """The points of rows of the table, of which the columns `KEYED` are needed."""
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
    return connect_duckdb()


_LOCAL = "[^/#<]*>$"
"""The part of an IRI after its last slash or hash, or all of it but the opening bracket."""


@dataclass(frozen=True)
class Transformation:
    """Another order. `of_key` and `of_column` say the same, the one in Python, the other in SQL of a term's text."""

    name: str
    costs: str
    of_key: Callable[[str], str]
    of_column: Callable[[Sql], Sql]


def _is_typed(found: str) -> bool:
    return found[:1] in (NUMBER, TIME)


def _strip_prefix(found: str) -> str:
    if _is_typed(found) or not found.startswith("<") or found.startswith("<<"):
        return found
    local = re.search(_LOCAL, found)
    return "<" + (local[0] if local else "")


def _prefix_column(column: Sql) -> Sql:
    is_iri = every(call("TW_STARTS", column, text("<")), negate(call("TW_STARTS", column, text("<<"))))
    return case((is_iri, concat(text("<"), call("TW_EXTRACT", column, text(_LOCAL), number(0)))), default=column)


def _reverse_key(found: str) -> str:
    return found if _is_typed(found) else found[:1] + found[:0:-1]


def _reversed_column(column: Sql) -> Sql:
    first = call("SUBSTRING", column, number(1), number(1))
    return concat(first, call("TW_REVERSED", call("SUBSTRING", column, number(2))))


TRANSFORMATIONS: Mapping[str, Transformation] = {
    each.name: each
    for each in (
        Transformation(
            "none",
            "Terms lie in their own order: constants, prefixes and ranges read only the zones that they touch.",
            lambda found: found,
            lambda column: column,
        ),
        Transformation(
            "prefix",
            "IRIs lie by what follows their last / or #. Constants, numbers and times read only the zones that they "
            "touch; a prefix or a range of IRIs touches every zone.",
            _strip_prefix,
            _prefix_column,
        ),
        Transformation(
            "reversed",
            "Terms lie by their texts from the end. Constants, numbers and times read only the zones that they touch; "
            "a prefix or a range of texts touches every zone.",
            _reverse_key,
            _reversed_column,
        ),
    )
}


def find_transformation(name: str) -> Transformation:
    """The transformation of a name. Raises InputError for an unknown one."""
    if name not in TRANSFORMATIONS:
        raise InputError(f"there is no transformation {name!r}; there are {', '.join(TRANSFORMATIONS)}")
    return TRANSFORMATIONS[name]
