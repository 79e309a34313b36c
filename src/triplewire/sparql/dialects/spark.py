"""The Spark SQL dialect: how it spells `TW_` functions, with ANSI mode on or off."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from triplewire.sparql import sql
from triplewire.sparql.dialects.duckdb import SPECIAL, constant_texts
from triplewire.sparql.dialects.regexes import InvalidPattern, translate_regex, translate_replacement
from triplewire.sparql.sql import Sql, call, case, cast, equal, every, negate, null, number, some, text

_WHOLE = exp.DataType.build("INT")


def plain_digits(value: Sql, written: Sql) -> Sql:
    """Write a double as XML Schema does. `written` is Spark's text, with an exponent if the value is far from 1."""
    whole = call("SUBSTRING", written, number(1), sql.binary(exp.Sub, sql.length(written), number(2)))
    return case(
        (exp.IsNan(this=value), text("NaN")),
        (equal(value, sql.double(float("inf"))), text("INF")),
        (equal(value, sql.double(float("-inf"))), text("-INF")),
        (_like(written, "%E%"), _spread(written)),
        (_like(written, "%.0"), whole),
        default=written,
    )


def _spread(written: Sql) -> Sql:
    """The digits with as many zeros, or the point at the place, that the exponent says."""
    sign = case((_like(written, "-%"), text("-")), default=text(""))
    mantissa = exp.SplitPart(this=written, delimiter=text("E"), part_index=number(1))
    # the bar marks the end, where a point and one zero are no digits
    digits = call(
        "TRANSLATE", call("REPLACE", sql.concat(mantissa, text("|")), text(".0|"), text("")), text("-.|"), text("")
    )
    exponent = sql.try_cast(exp.SplitPart(this=written, delimiter=text("E"), part_index=number(2)), _WHOLE)
    before = sql.binary(exp.Add, exponent, number(1))
    zeros = call("REPEAT", text("0"), exp.Neg(this=exp.Paren(this=before)))
    split = sql.concat(
        call("SUBSTRING", digits, number(1), before),
        text("."),
        call("SUBSTRING", digits, sql.binary(exp.Add, exponent, number(2))),
    )
    body = case(
        (sql.compare("<", exponent, number(0)), sql.concat(text("0."), zeros, digits)),
        (sql.compare("<=", sql.length(digits), before), call("RPAD", digits, before, text("0"))),
        default=split,
    )
    return sql.concat(sign, body)


def _like(written: Sql, form: str) -> Sql:
    return exp.Like(this=written, expression=text(form))


_LOCAL = exp.DataType.build("TIMESTAMP_NTZ", dialect="spark")
_GROUPS = 9
"""Groups that a pattern in a column is given, so that a replacement may name any of them."""


def _unescape(body: Sql) -> Sql:
    return call("GET_JSON_OBJECT", sql.concat(text('{"a":"'), body, text('"}')), text("$.a"))


def _escape(value: Sql) -> Sql:
    """JSON escapes what canonical N-Triples does, but for three characters."""
    json = call("TO_JSON", call("NAMED_STRUCT", text("a"), value))
    made = call("SUBSTRING", json, number(7), sql.binary(exp.Sub, sql.length(json), number(8)))
    for code in (0x7F, 0xFFFE, 0xFFFF):
        made = call("REPLACE", made, text(chr(code)), text(f"\\u{code:04X}"))
    return case((call("REGEXP_LIKE", value, text(SPECIAL)), made), default=value)


def _regex(value: Sql, pattern: Sql, flags: Sql) -> Sql:
    """A wrong pattern would end the whole query, so one that is no constant is tried first."""
    if known := constant_texts(pattern, flags):
        try:
            return call("REGEXP_LIKE", value, text(translate_regex(known[0], known[1], "java").text))
        except InvalidPattern:
            return cast(null(), sql.BOOLEAN)
    return call("REGEXP_LIKE", value, _tried(_flagged(pattern, flags)))


def _tried(pattern: Sql) -> Sql:
    return call("TRY_REFLECT", text("java.util.regex.Pattern"), text("compile"), pattern)


def _flagged(pattern: Sql, flags: Sql) -> Sql:
    """A pattern in a column, with what can be translated by replacing text."""
    made = pattern
    for name, java in ((r"\d", r"\p{Nd}"), (r"\i", r"[\p{L}_:]"), (r"\c", r"[\p{L}\p{N}_:.\-]")):
        made = call("REPLACE", made, text(name), text(java))
    spaced = case((_has(flags, "x"), call("TRANSLATE", made, text(" \t\n\r"), text(""))), default=made)
    quoted = sql.concat(text("\\Q"), call("REPLACE", pattern, text("\\E"), text("\\E\\\\E\\Q")), text("\\E"))
    letters = call("TRANSLATE", flags, text("xq"), text(""))
    whole = sql.concat(
        text("(?d"),
        letters,
        case((_has(flags, "i"), text("u")), default=text("")),
        text(")"),
        case((_has(flags, "q"), quoted), default=spaced),
    )
    return case((call("REGEXP_LIKE", flags, text("^[imsxq]*$")), whole))


def _has(flags: Sql, flag: str) -> Sql:
    return call("CONTAINS", flags, text(flag))


def _replace(value: Sql, pattern: Sql, by: Sql, flags: Sql) -> Sql:
    """A pattern that matches nothing at all is an error, too."""
    try:
        if known := constant_texts(pattern, by, flags):
            found = translate_regex(known[0], known[2], "java")
            made, instead = text(found.text), text(translate_replacement(known[1], found.groups, known[2], "java"))
        else:
            made, instead = _with_groups(pattern, flags), _checked(by, flags)
    except InvalidPattern:
        return cast(null(), sql.VARCHAR)
    return case((negate(call("REGEXP_LIKE", text(""), made)), call("REGEXP_REPLACE", value, made.copy(), instead)))


def _with_groups(pattern: Sql, flags: Sql) -> Sql:
    """Append empty groups, for those that the replacement names and the pattern does not have."""
    known = constant_texts(pattern, flags)
    plain = text(translate_regex(known[0], known[1], "java").text) if known else _tried(_flagged(pattern, flags))
    return sql.concat(text("(?:"), plain, text(")" + "()" * _GROUPS))


def _checked(by: Sql, flags: Sql) -> Sql:
    """Translate a replacement in a column; NULL if it is invalid."""
    if known := constant_texts(by, flags):
        return text(translate_replacement(known[0], _GROUPS, known[1], "java"))
    literal = call("REGEXP_REPLACE", by, text(r"([\\$])"), text(r"\\$1"))
    return case((_has(flags, "q"), literal), (call("REGEXP_LIKE", by, text(r"(?s)^([^$\\]|\\[$\\]|\$[0-9])*$")), by))


def _flat_list(*items: Sql) -> Sql:
    rows = call("COLLECT_LIST", call("ARRAY", *items))
    return call("FLATTEN", call("ARRAY_SORT", rows))


def _truncate(value: Sql) -> Sql:
    return case((sql.compare(">=", value, number(0)), call("FLOOR", value)), default=call("CEIL", value))


def _rounding(name: str) -> Callable[[Sql], Sql]:
    """Round a double down or up. Spark's own functions return integers, which overflow and have no negative zero."""

    def round_double(value: Sql) -> Sql:
        far = some(equal(value, sql.double(0.0)), sql.compare(">=", exp.Abs(this=value), sql.double(2.0**52)))
        whole = cast(call(name, value), exp.DataType.build("DOUBLE"))
        minus = every(sql.compare("<", value, sql.double(0.0)), equal(call(name, value), number(0)))
        return case((far, value), (minus, sql.double(-0.0)), default=whole)

    return round_double


def _decimal_text(value: Sql) -> Sql:
    """Strip trailing zeros, and a trailing point."""
    return call("REGEXP_REPLACE", exp.cast(value, "STRING"), text(r"\.?0+$"), text(""))


def _encode(value: Sql) -> Sql:
    """Spark encodes forms, not parts of an IRI."""
    made = call("URL_ENCODE", value)
    for given, wanted in (("+", "%20"), ("*", "%2A"), ("%7E", "~")):
        made = call("REPLACE", made, text(given), text(wanted))
    return made


def _instant(lexical: Sql) -> Sql:
    """The instant in UTC, whatever zone the session is in."""
    zone = call("REGEXP_EXTRACT", lexical, text("(Z|[+-][0-9]{2}:[0-9]{2})$"), number(1))
    local = call("SUBSTRING", lexical, number(1), sql.binary(exp.Sub, sql.length(lexical), sql.length(zone)))
    late = call("REPLACE", local, text("T24:00:00"), text("T00:00:00"))
    start = sql.try_cast(late, _LOCAL)
    days = case((call("CONTAINS", local, text("T24:00:00")), number(1)), default=number(0))
    whole = exp.DataType.build("INT")
    hours = sql.try_cast(
        sql.concat(call("SUBSTRING", zone, number(1), number(1)), call("SUBSTRING", zone, number(2), number(2))), whole
    )
    minutes = sql.try_cast(
        sql.concat(call("SUBSTRING", zone, number(1), number(1)), call("SUBSTRING", zone, number(5), number(2))), whole
    )
    shift = call(
        "MAKE_DT_INTERVAL",
        days,
        *(exp.Coalesce(this=exp.Neg(this=exp.Paren(this=each)), expressions=[number(0)]) for each in (hours, minutes)),
    )
    return sql.binary(exp.Add, start, shift)


SPELLINGS: Mapping[str, Callable[..., Sql]] = {
    "TW_STARTS": lambda value, start: call("STARTSWITH", value, start),
    "TW_ENDS": lambda value, end: call("ENDSWITH", value, end),
    "TW_CONTAINS": lambda value, part: call("CONTAINS", value, part),
    "TW_POSITION": lambda value, part: call("LOCATE", part, value),
    "TW_FULL_MATCH": lambda value, form: call("REGEXP_LIKE", value, sql.concat(text("^(?:"), form, text(")\\z"))),
    "TW_EXTRACT": lambda value, form, group: call("REGEXP_EXTRACT", value, form, group),
    "TW_TRIM": lambda value: call("BTRIM", value, text(" \t\n\r")),
    "TW_UNESCAPE": _unescape,
    "TW_ESCAPE": _escape,
    "TW_REGEX": _regex,
    "TW_REPLACE": _replace,
    "TW_UPPER": lambda value: call("UPPER", value),
    "TW_LOWER": lambda value: call("LOWER", value),
    "TW_ENCODE": _encode,
    "TW_MD5": lambda value: call("MD5", value),
    "TW_SHA1": lambda value: call("SHA1", value),
    "TW_SHA256": lambda value: call("SHA2", value, number(256)),
    "TW_SHA384": lambda value: call("SHA2", value, number(384)),
    "TW_SHA512": lambda value: call("SHA2", value, number(512)),
    "TW_TRUNCATE": _truncate,
    "TW_FLOOR": _rounding("FLOOR"),
    "TW_CEIL": _rounding("CEIL"),
    "TW_DECIMAL_TEXT": _decimal_text,
    "TW_DOUBLE_TEXT": lambda value: plain_digits(value, cast(value, sql.VARCHAR)),
    "TW_FLOAT_TEXT": lambda value: plain_digits(value, cast(sql.try_cast(value, sql.FLOAT), sql.VARCHAR)),
    "TW_INSTANT": _instant,
    "TW_MICROS": lambda value: call("UNIX_MICROS", value),
    "TW_REVERSED": lambda value: call("REVERSE", value),
    "TW_RANDOM": lambda serial: call("RAND"),
    "TW_UUID": lambda serial: call("UUID"),
    "TW_EXPLODE": lambda *rows: call("EXPLODE", exp.Array(expressions=list(rows))),
    "TW_FLAT_LIST": _flat_list,
    "TW_SUM": lambda value: sql.try_cast(call("TRY_SUM", value), sql.DECIMAL),
    "TW_MEAN": lambda total, count: sql.try_cast(
        call("TRY_DIVIDE", total, cast(count, exp.DataType.build("DECIMAL(20, 0)"))), sql.DECIMAL
    ),
    "TW_JOINED": lambda value, separator: call("LISTAGG", value, separator),
    "TW_JOINED_STEADY": lambda value, separator: call(
        "ARRAY_JOIN", call("SORT_ARRAY", call("COLLECT_LIST", value)), separator
    ),
    # The last digits of a sum of doubles depend on which partitions come first, whatever they are sorted by.
    "TW_SUM_STEADY": lambda value: call("SUM", value),
    "TW_AVG_STEADY": lambda value: call("AVG", value),
    "TW_AT_LEAST": lambda value, key: call("MIN_BY", value, key),
    "TW_AT_MOST": lambda value, key: call("MAX_BY", value, key),
    "TW_ROW": lambda *keys: call("STRUCT", *keys),
}
