"""The DuckDB dialect: how it spells `TW_` functions, and the Python functions that it is given for the rest.

Python functions work on Arrow columns. One of them is maximum bipartite matching, for bags.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection
from duckdb.func import PythonUDFType
from sqlglot import exp

from triplewire.sparql import sql
from triplewire.sparql.dialects.regexes import InvalidPattern, Regex, translate_regex, translate_replacement
from triplewire.sparql.sql import Sql, call, case, cast, equal, every, negate, null, number, text

ArrowColumn = Any
"""A `pyarrow.ChunkedArray` of strings; pyarrow is loaded when the first function runs."""


def _map_rows(make: Callable[..., str | None], *columns: ArrowColumn) -> ArrowColumn:
    """Apply a function to each row; NULL if an argument is NULL."""
    import pyarrow

    rows = zip(*(each.to_pylist() for each in columns), strict=True)
    return pyarrow.array([None if None in row else make(*row) for row in rows], pyarrow.string())


def _map_one(make: Callable[[str], str]) -> Callable[[ArrowColumn], ArrowColumn]:
    return lambda column: _map_rows(make, column)


def _pattern(pattern: str, flags: str) -> str | None:
    try:
        return translate_regex(pattern, flags, "re2").text
    except InvalidPattern:
        return None


def _replacement(pattern: str, text: str, flags: str) -> str | None:
    try:
        return translate_replacement(text, translate_regex(pattern, flags, "re2").groups, flags, "re2")
    except InvalidPattern:
        return None


def _digits(written: str) -> str:
    """Write a number that has an exponent, or is not finite, in plain digits as XML Schema does."""
    if written in _NAMES:
        return _NAMES[written]
    plain = format(Decimal(written), "f")
    return plain.removesuffix(".0")


_NAMES = {"nan": "NaN", "-nan": "NaN", "inf": "INF", "-inf": "-INF"}

TEXT_FUNCTIONS: Mapping[str, tuple[int, Callable[..., ArrowColumn]]] = {
    "tw_sha384": (1, _map_one(lambda text: hashlib.sha384(text.encode()).hexdigest())),
    "tw_sha512": (1, _map_one(lambda text: hashlib.sha512(text.encode()).hexdigest())),
    "tw_upper": (1, _map_one(str.upper)),
    "tw_lower": (1, _map_one(str.lower)),
    "tw_digits": (1, _map_one(_digits)),
    "tw_pattern": (2, lambda pattern, flags: _map_rows(_pattern, pattern, flags)),
    "tw_replacement": (3, lambda pattern, text, flags: _map_rows(_replacement, pattern, text, flags)),
}
"""The functions, each with the number of its arguments; all take and return strings."""


def match_column(lists: Any) -> Any:  # noqa: ANN401 - a column of Arrow; pyarrow is loaded when the function runs
    """Apply `maximum_matching` to each list of masks; a NULL mask is skipped."""
    import pyarrow

    found = (
        None if masks is None else maximum_matching([each for each in masks if each]) for masks in lists.to_pylist()
    )
    return pyarrow.array(found, pyarrow.int64())


def maximum_matching(masks: Sequence[int]) -> int:
    """Return the size of a maximum matching: bit j of a member's mask says that it may be paired with element j.

    It uses augmenting paths: a member without a free element takes one whose member can move on to another.
    """
    owners: dict[int, int] = {}
    return sum(_augment(member, masks, owners, [0]) for member in range(len(masks)))


def _augment(member: int, masks: Sequence[int], owners: dict[int, int], tried: list[int]) -> bool:
    """Find an element for a member, and move others on for it. `tried` holds the elements that need no second look; the
    depth is at most the number of elements."""
    while left := masks[member] & ~tried[0]:
        bit = left & -left
        tried[0] |= bit
        if bit not in owners or _augment(owners[bit], masks, owners, tried):
            owners[bit] = member
            return True
    return False


_HUGE = exp.DataType.build("HUGEINT", dialect="duckdb")


def open_engine(memory: str | None = None) -> DuckDBPyConnection:
    """Open a database in memory, for one thread, with our functions: Spark runs one task for each core. With a `memory`
    limit it loads no extensions and spills nothing to files."""
    config: dict[str, Any] = {"threads": 1}
    if memory is not None:
        config |= {"memory_limit": memory, "temp_directory": "", "autoload_known_extensions": False}
    duck = duckdb.connect(config=config)
    register_functions(duck)
    return duck


def register_functions(connection: DuckDBPyConnection) -> None:
    """Register the functions that DuckDB lacks. Needed once for each database; a second call does nothing."""
    for name, (given, made, function) in _NATIVES.items():
        try:
            connection.create_function(name, function, [*given], made, type=PythonUDFType.ARROW)
        except duckdb.CatalogException:
            return


_NATIVES: Mapping[str, tuple[Sequence[str], str, Callable[..., object]]] = {
    **{name: (["VARCHAR"] * count, "VARCHAR", function) for name, (count, function) in TEXT_FUNCTIONS.items()},
    "tw_paired": (["BIGINT[]"], "BIGINT", match_column),
}


def _unescape(body: Sql) -> Sql:
    """Every escape of canonical N-Triples is one of JSON."""
    return call("JSON_EXTRACT_STRING", sql.concat(text('"'), body, text('"')), text("$"))


def _escape(value: Sql) -> Sql:
    """JSON escapes what canonical N-Triples does, but for three characters."""
    made = call("ARRAY_SLICE", cast(call("TO_JSON", value), sql.VARCHAR), number(2), number(-2))
    for code in (0x7F, 0xFFFE, 0xFFFF):
        made = call("REPLACE", made, call("CHR", number(code)), text(f"\\u{code:04X}"))
    return case((call("REGEXP_MATCHES", value, text(SPECIAL)), made), default=value)


SPECIAL = r'["\\\x00-\x1f\x7f\x{FFFE}\x{FFFF}]'
"""The characters that canonical N-Triples escapes in a literal."""


def _regex(value: Sql, pattern: Sql, flags: Sql) -> Sql:
    """A pattern that the engine does not take is an error of the expression, not of the query.

    TRY does that for patterns in columns. A constant one is compiled when the query is planned, which TRY does not
    reach, so the engine is asked beforehand.
    """
    if known := constant_texts(pattern, flags):
        found = _constant_regex(known[0], known[1])
        return call("TRY", call("REGEXP_MATCHES", value, text(found.text))) if found else cast(null(), sql.BOOLEAN)
    return call("TRY", call("REGEXP_MATCHES", value, call("tw_pattern", pattern, flags)))


def constant_texts(*values: Sql) -> list[str]:
    """Return the texts if all values are constants; else an empty list."""
    return [each.name for each in values] if all(_is_text(each) for each in values) else []


def _is_text(value: Sql) -> bool:
    return isinstance(value, exp.Literal) and value.is_string


@lru_cache(maxsize=1024)
def _constant_regex(pattern: str, flags: str) -> Regex | None:
    """Translate the pattern for RE2; None if it is invalid or RE2 refuses it."""
    try:
        found = translate_regex(pattern, flags, "re2")
        _engine().cursor().execute("SELECT REGEXP_MATCHES('', $1)", [found.text]).fetchall()
    except (InvalidPattern, duckdb.Error):
        return None
    return found


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def _replace(value: Sql, pattern: Sql, by: Sql, flags: Sql) -> Sql:
    """A pattern that matches nothing at all is an error, too."""
    made, instead = call("tw_pattern", pattern, flags), call("tw_replacement", pattern, by, flags)
    if known := constant_texts(pattern, flags):
        if not (found := _constant_regex(known[0], known[1])):
            return cast(null(), sql.VARCHAR)
        made = text(found.text)
    if given := constant_texts(pattern, by, flags):
        try:
            instead = text(
                translate_replacement(given[1], translate_regex(given[0], given[2], "re2").groups, given[2], "re2")
            )
        except InvalidPattern:
            return cast(null(), sql.VARCHAR)
    empty = call("TRY", call("REGEXP_MATCHES", text(""), made))
    return case((negate(empty), call("TRY", call("REGEXP_REPLACE", value, made.copy(), instead, text("g")))))


def _flat_list(*items: Sql) -> Sql:
    rows = call("LIST", exp.Array(expressions=list(items)))
    return call("FLATTEN", call("LIST_SORT", rows))


def _decimal_text(value: Sql) -> Sql:
    digits = call("RTRIM", exp.cast(value, "VARCHAR"), text("0"))
    return call("RTRIM", digits, text("."))


def _floating_text(value: Sql, rounded: Sql) -> Sql:
    """Most numbers are near enough to 1 for DuckDB to write them without an exponent."""
    written = cast(rounded, sql.VARCHAR)
    near = exp.Between(this=exp.Abs(this=value), low=sql.double(1e-4), high=sql.double(1e15))
    plain = call("RTRIM", call("RTRIM", written, text("0")), text("."))
    return case((near, plain), default=call("tw_digits", written.copy()))


def _cased(name: str) -> Callable[[Sql], Sql]:
    """DuckDB maps letters one by one; where some are not ASCII, that is not the whole mapping of Unicode."""

    def convert_case(value: Sql) -> Sql:
        ascii_only = equal(call("STRLEN", value), sql.length(value))
        return case((ascii_only, call(name, value)), default=call(f"tw_{name.lower()}", value))

    return convert_case


def _instant(lexical: Sql) -> Sql:
    """The instant in UTC. Without a zone, or in Z, a plain cast does; it would ignore any other zone."""
    shifted = call("MAKE_TIMESTAMP", call("EPOCH_US", sql.try_cast(lexical, exp.DataType.build("TIMESTAMPTZ"))))
    return case((_shifted(lexical), shifted), default=sql.try_cast(lexical, sql.TIMESTAMP))


def _shifted(lexical: Sql) -> Sql:
    """Return the condition that it ends in a zone other than Z."""
    colon = equal(call("SUBSTRING", lexical, number(-3), number(1)), text(":"))
    return every(colon, call("CONTAINS", text("+-"), call("SUBSTRING", lexical, number(-6), number(1))))


def _sum(value: Sql) -> Sql:
    """Sum by parts, so that no intermediate sum overflows the engine before the result does."""
    whole = call("SUM", call("TRUNC", value))
    rest = call("SUM", sql.binary(exp.Sub, value, call("TRUNC", value)))
    return sql.try_cast(
        sql.binary(exp.Add, sql.try_cast(whole, sql.DECIMAL), sql.try_cast(rest, sql.DECIMAL)), sql.DECIMAL
    )


def _mean(total: Sql, count: Sql) -> Sql:
    """A decimal by an integer: DuckDB divides integers exactly, and a decimal without its point is one."""
    return _let("total", total, lambda held: _divided(held, call("NULLIF", count, number(0))))


def _divided(total: Sql, count: Sql) -> Sql:
    digits = cast(call("REPLACE", cast(total, sql.VARCHAR), text("."), text("")), _HUGE)
    return _let("digits", cast(exp.IntDiv(this=digits, expression=count), sql.VARCHAR), _with_point)


def _with_point(digits: Sql) -> Sql:
    """The eighteen last digits behind a point."""
    sign = case((call("STARTS_WITH", digits, text("-")), text("-")), default=text(""))
    padded = call("LPAD", call("LTRIM", digits, text("-")), number(40), text("0"))
    fraction = call("RIGHT", padded, number(18))
    return sql.try_cast(sql.concat(sign, call("LEFT", padded, number(-18)), text("."), fraction), sql.DECIMAL)


def _let(name: str, value: Sql, make: Callable[[Sql], Sql]) -> Sql:
    """Apply `make` to a value that is long in SQL, which is written once."""
    rule = exp.Lambda(this=make(exp.to_identifier(name)), expressions=[exp.to_identifier(name)])
    listed = exp.Transform(this=exp.Array(expressions=[value]), expression=rule)
    return call("LIST_EXTRACT", listed, number(1))


def _steady(value: Sql, function: str, *arguments: Sql) -> Sql:
    """An aggregate over the values in their own order, whatever that of the rows is."""
    return call("LIST_AGGREGATE", call("LIST_SORT", call("LIST", value)), text(function), *arguments)


def _reversed(value: Sql) -> Sql:
    """Reverse by code points; DuckDB's own function works by grapheme clusters."""
    letters = call("REGEXP_EXTRACT_ALL", value, text("(?s)."))
    return call("ARRAY_TO_STRING", call("LIST_REVERSE", letters), text(""))


SPELLINGS: Mapping[str, Callable[..., Sql]] = {
    "TW_STARTS": lambda value, start: call("STARTS_WITH", value, start),
    "TW_ENDS": lambda value, end: call("ENDS_WITH", value, end),
    "TW_CONTAINS": lambda value, part: call("CONTAINS", value, part),
    "TW_POSITION": lambda value, part: call("STRPOS", value, part),
    "TW_FULL_MATCH": lambda value, form: call("REGEXP_FULL_MATCH", value, form),
    "TW_EXTRACT": lambda value, form, group: call("REGEXP_EXTRACT", value, form, group),
    "TW_TRIM": lambda value: call("TRIM", value, text(" \t\n\r")),
    "TW_UNESCAPE": _unescape,
    "TW_ESCAPE": _escape,
    "TW_REGEX": _regex,
    "TW_REPLACE": _replace,
    "TW_UPPER": _cased("UPPER"),
    "TW_LOWER": _cased("LOWER"),
    "TW_ENCODE": lambda value: call("URL_ENCODE", value),
    "TW_MD5": lambda value: call("MD5", value),
    "TW_SHA1": lambda value: call("SHA1", value),
    "TW_SHA256": lambda value: call("SHA256", value),
    "TW_SHA384": lambda value: call("tw_sha384", value),
    "TW_SHA512": lambda value: call("tw_sha512", value),
    "TW_TRUNCATE": lambda value: call("TRUNC", value),
    "TW_FLOOR": lambda value: call("FLOOR", value),
    "TW_CEIL": lambda value: call("CEIL", value),
    "TW_DECIMAL_TEXT": _decimal_text,
    "TW_DOUBLE_TEXT": lambda value: _floating_text(value, value),
    "TW_FLOAT_TEXT": lambda value: _floating_text(value, sql.try_cast(value, sql.FLOAT)),
    "TW_INSTANT": _instant,
    "TW_MICROS": lambda value: call("EPOCH_US", value),
    "TW_REVERSED": _reversed,
    "TW_RANDOM": lambda serial: call("RANDOM"),
    "TW_UUID": lambda serial: cast(call("UUID"), sql.VARCHAR),
    "TW_EXPLODE": lambda *rows: call("UNNEST", exp.Array(expressions=list(rows))),
    "TW_FLAT_LIST": _flat_list,
    "TW_SUM": _sum,
    "TW_MEAN": _mean,
    "TW_JOINED": lambda value, separator: call("STRING_AGG", value, separator),
    "TW_JOINED_STEADY": lambda value, separator: _steady(value, "string_agg", separator),
    "TW_SUM_STEADY": lambda value: _steady(value, "sum"),
    "TW_AVG_STEADY": lambda value: _steady(value, "avg"),
    "TW_AT_LEAST": lambda value, key: call("ARG_MIN_NULL", value, key),
    "TW_AT_MOST": lambda value, key: call("ARG_MAX_NULL", value, key),
    "TW_LIST": lambda value: call("LIST", value),
    "TW_PAIRED": lambda masks: call("tw_paired", masks),
    "TW_ROW": lambda *keys: call("ROW", *keys),
}
