"""How Spark spells what engines spell differently. Works with ANSI mode on or off."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp

from triplewire.sparql.compile.sql import Sql, call, case, compare, concat, number, text
from triplewire.sparql.dialects.duckdb import flagged


def _unescape(body: Sql) -> Sql:
    return call("GET_JSON_OBJECT", concat(text('{"a":"'), body, text('"}')), text("$.a"))


def _regex(value: Sql, pattern: Sql, flags: Sql) -> Sql:
    """Java ignores the case of ASCII letters only, unless told otherwise, and a wrong pattern ends the whole query."""
    if isinstance(pattern, exp.Literal) and not _valid(pattern.name):
        return exp.null()
    return call("REGEXP_LIKE", value, flagged(pattern, flags, "u"))


def _valid(pattern: str) -> bool:
    """As Python sees it, which knows all but the names of character classes."""
    try:
        re.compile(re.sub(r"\\[pP]\{\w+\}", r"\\w", pattern))
    except re.error:
        return False
    return True


def _flat_list(*items: Sql) -> Sql:
    rows = call("COLLECT_LIST", call("ARRAY", *items))
    return call("FLATTEN", call("ARRAY_SORT", rows))


def _truncate(value: Sql) -> Sql:
    return case((compare(">=", value, number(0)), call("FLOOR", value)), default=call("CEIL", value))


def _decimal_text(value: Sql) -> Sql:
    """Without zeros at the end, and without a point there."""
    return call("REGEXP_REPLACE", exp.cast(value, "STRING"), text(r"\.?0+$"), text(""))


SPELLINGS: Mapping[str, Callable[..., Sql]] = {
    "TW_STARTS": lambda value, start: call("STARTSWITH", value, start),
    "TW_ENDS": lambda value, end: call("ENDSWITH", value, end),
    "TW_CONTAINS": lambda value, part: call("CONTAINS", value, part),
    "TW_UNESCAPE": _unescape,
    "TW_REGEX": _regex,
    "TW_TRUNCATE": _truncate,
    "TW_DECIMAL_TEXT": _decimal_text,
    "TW_FLAT_LIST": _flat_list,
}
