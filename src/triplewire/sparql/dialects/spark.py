"""How Spark spells what engines spell differently. Works with ANSI mode on or off."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from triplewire.sparql.compile.sql import Sql, call, concat, text
from triplewire.sparql.dialects.duckdb import flagged


def _unescape(body: Sql) -> Sql:
    return call("GET_JSON_OBJECT", concat(text('{"a":"'), body, text('"}')), text("$.a"))


def _regex(value: Sql, pattern: Sql, flags: Sql) -> Sql:
    """Java ignores the case of ASCII letters only, unless told otherwise."""
    return call("REGEXP_LIKE", value, flagged(pattern, flags, "u"))


def _flat_list(*items: Sql) -> Sql:
    rows = call("COLLECT_LIST", call("ARRAY", *items))
    return call("FLATTEN", call("ARRAY_SORT", rows))


def _truncate(value: Sql) -> Sql:
    whole = call("FLOOR", call("ABS", value))
    return exp.Mul(this=call("SIGN", value), expression=whole)


SPELLINGS: Mapping[str, Callable[..., Sql]] = {
    "TW_STARTS": lambda value, start: call("STARTSWITH", value, start),
    "TW_ENDS": lambda value, end: call("ENDSWITH", value, end),
    "TW_CONTAINS": lambda value, part: call("CONTAINS", value, part),
    "TW_UNESCAPE": _unescape,
    "TW_REGEX": _regex,
    "TW_TRUNCATE": lambda value: call("TRUNC", value),
    "TW_DECIMAL_TEXT": lambda value: exp.cast(value, "STRING"),
    "TW_FLAT_LIST": _flat_list,
}
