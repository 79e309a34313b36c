"""How DuckDB spells what engines spell differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache

import duckdb
from sqlglot import exp

from triplewire.sparql.compile.sql import Sql, call, case, concat, equal, text


def _unescape(body: Sql) -> Sql:
    """Every escape of canonical N-Triples is one of JSON."""
    return call("JSON_EXTRACT_STRING", concat(text('"'), body, text('"')), text("$"))


def _regex(value: Sql, pattern: Sql, flags: Sql) -> Sql:
    """A pattern that the engine does not take is an error of the filter, not of the query.

    TRY does that for patterns in columns. A constant one is compiled when the query is planned, which TRY does not
    reach, so the engine is asked beforehand.
    """
    if isinstance(pattern, exp.Literal) and not _accepted(pattern.name):
        return exp.null()
    return call("TRY", call("REGEXP_MATCHES", value, flagged(pattern, flags)))


@lru_cache(maxsize=1024)
def _accepted(pattern: str) -> bool:
    try:
        _engine().cursor().execute("SELECT REGEXP_MATCHES('', $1)", [pattern]).fetchall()
    except duckdb.Error:
        return False
    return True


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def flagged(pattern: Sql, flags: Sql, suffix: str = "") -> Sql:
    """The pattern with its flags in front, where there are any."""
    if isinstance(flags, exp.Literal):
        return concat(text(f"(?{flags.this}{suffix})"), pattern) if flags.this else pattern
    return concat(
        case((equal(flags, text("")), text("")), default=concat(text("(?"), flags, text(f"{suffix})"))), pattern
    )


def _flat_list(*items: Sql) -> Sql:
    rows = call("LIST", exp.Array(expressions=list(items)))
    return call("FLATTEN", call("LIST_SORT", rows))


def _decimal_text(value: Sql) -> Sql:
    digits = call("RTRIM", exp.cast(value, "VARCHAR"), text("0"))
    return call("RTRIM", digits, text("."))


SPELLINGS: Mapping[str, Callable[..., Sql]] = {
    "TW_STARTS": lambda value, start: call("STARTS_WITH", value, start),
    "TW_ENDS": lambda value, end: call("ENDS_WITH", value, end),
    "TW_CONTAINS": lambda value, part: call("CONTAINS", value, part),
    "TW_UNESCAPE": _unescape,
    "TW_REGEX": _regex,
    "TW_TRUNCATE": lambda value: call("TRUNC", value),
    "TW_DECIMAL_TEXT": _decimal_text,
    "TW_FLAT_LIST": _flat_list,
}
