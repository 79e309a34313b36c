"""Patterns: REGEX and REPLACE."""

from __future__ import annotations

from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.arithmetic import Bind
from triplewire.sparql.compile.computed import Text, Truth, tagged
from triplewire.sparql.compile.sql import Sql, call, case, every, is_null, null, text
from triplewire.sparql.compile.strings import plain, worded
from triplewire.sparql.compile.values import STRINGS, Value


def regex(value: Value, pattern: Value, flags: Value | None = None) -> Value:
    """A pattern or flags that are none are an error."""
    known = [pattern, *([flags] if flags else [])]
    fits = every(value.among(*STRINGS), *(each.among(Family.STRING) for each in known))
    wanted = text("") if flags is None else flags.narrowed(Family.STRING).string()
    strings = (value.narrowed(*STRINGS).string(), pattern.narrowed(Family.STRING).string())
    return Truth(case((fits, call("TW_REGEX", *strings, wanted))))


def replaced(bind: Bind, value: Value, pattern: Value, by: Value, flags: Value | None = None) -> Value:
    given = worded(value, bind)
    parts: list[Sql] = [plain(pattern, bind), plain(by, bind), text("") if flags is None else plain(flags, bind)]
    if is_null(given.value) or any(is_null(each) for each in parts):
        return Text(null())
    return tagged(bind(call("TW_REPLACE", given.value, *parts)), given.tag)
