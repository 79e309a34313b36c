"""String functions, REGEX and REPLACE, hashes, and the functions that make IRIs, UUIDs and blank nodes.

Language tags are kept where SPARQL says so. `bind` names a value that is used more than once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urljoin

from sqlglot import exp

from triplewire.sparql import sql
from triplewire.sparql.algebra import Family
from triplewire.sparql.compiler.arithmetic import BindSql
from triplewire.sparql.compiler.terms import ConstantValue
from triplewire.sparql.compiler.values import (
    NUMERIC,
    STRINGS,
    ComputedBlank,
    ComputedBoolean,
    ComputedIri,
    ComputedNumber,
    ComputedString,
    Value,
    tagged_string,
)
from triplewire.sparql.sql import Sql, call, case, cast, equal, every, is_null, negate, null, number, some, text

_TAG = "[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*"


def as_string(value: Value, bind: BindSql) -> ComputedString:
    """The value where it is a string, tagged or not; an error where it is not."""
    if not value.families & set(STRINGS):
        return ComputedString(null())
    kept = value.narrow(*STRINGS)
    inner = bind(_where(value, STRINGS, kept.string()))
    return tagged_string(inner, bind(kept.language()) if Family.TAGGED in value.families else null())


def plain_string(value: Value, bind: BindSql) -> Sql:
    """The text of a string without a tag; NULL for anything else."""
    return bind(_where(value, (Family.STRING,), value.narrow(Family.STRING).string()))


def _where(value: Value, families: tuple[Family, ...], result: Sql) -> Sql:
    return case((value.among(*families), result)) if value.families & set(families) else null()


def make_integer(value: Sql, bind: BindSql) -> ComputedNumber:
    """An integer, of SQL that gives one."""
    made = bind(value)
    return ComputedNumber(number(1), _exact(made), _double(made), frozenset({Family.EXACT}))


def _exact(value: Sql) -> Sql:
    return null() if is_null(value) else cast(value, sql.DECIMAL)


def _double(value: Sql) -> Sql:
    return null() if is_null(value) else cast(value, sql.DOUBLE)


def strlen(bind: BindSql, value: Value) -> Value:
    return make_integer(sql.length(as_string(value, bind).value), bind)


def make_string_function(name: str) -> Callable[[BindSql, Value], Value]:
    """A function that changes the text and keeps the tag."""

    def compile_call(bind: BindSql, value: Value) -> Value:
        given = as_string(value, bind)
        return tagged_string(bind(call(name, given.value)), given.tag)

    return compile_call


def encode_for_uri(bind: BindSql, value: Value) -> Value:
    return ComputedString(bind(call("TW_ENCODE", as_string(value, bind).value)))


def concat_strings(bind: BindSql, *values: Value) -> Value:
    """Compile CONCAT: in the language of all arguments, if they share one."""
    given = [as_string(value, bind) for value in values]
    if not given:
        return ComputedString(text(""))
    if any(is_null(each.value) for each in given):
        return ComputedString(null())
    made = bind(sql.concat(*(each.value for each in given))) if len(given) > 1 else given[0].value
    if any(is_null(each.tag) for each in given):
        return ComputedString(made)
    shared = every(*(equal(given[0].tag, each.tag) for each in given[1:]))
    return tagged_string(made, bind(case((shared, given[0].tag))))


def substr(bind: BindSql, value: Value, start: Value, count: Value | None = None) -> Value:
    """Compile SUBSTR. Positions are rounded as XPath rounds; those outside the string select nothing."""
    given = as_string(value, bind)
    first = _round_position(start, bind)
    if count is None:
        return tagged_string(bind(_from(given.value, first)), given.tag)
    end = bind(sql.binary(exp.Add, first, _round_position(count, bind)))
    return tagged_string(bind(_between(given.value, first, end)), given.tag)


def _round_position(value: Value, bind: BindSql) -> Sql:
    """Round a number to a whole double; a half goes up."""
    if not value.families & NUMERIC:
        return null()
    at = bind(value.number())
    return bind(call("TW_FLOOR", sql.binary(exp.Add, at, sql.double(0.5))))


_LAST = 2_000_000_000
"""No string is longer, so positions are cut here before they are made integers."""


def _from(value: Sql, first: Sql) -> Sql:
    if is_null(value) or is_null(first):
        return null()
    empty = case((sql.present(value), text("")))
    return case((_is_nan(first), empty), (sql.present(first), call("SUBSTRING", value, _position(first))))


def _between(value: Sql, first: Sql, end: Sql) -> Sql:
    if is_null(value) or is_null(first) or is_null(end):
        return null()
    here, there = _position(first), _position(end)
    empty = some(_is_nan(first), _is_nan(end), sql.compare("<=", there, here))
    count = sql.binary(exp.Sub, there, here)
    return case(
        (empty, case((sql.present(value), text("")))), (sql.present(end), call("SUBSTRING", value, here, count))
    )


def _is_nan(value: Sql) -> Sql:
    return null() if is_null(value) else exp.IsNan(this=value)


def _position(value: Sql) -> Sql:
    low = case((sql.compare("<", value, sql.double(1.0)), sql.double(1.0)), default=value)
    cut = case((sql.compare(">", value, sql.double(float(_LAST))), sql.double(float(_LAST))), default=low)
    return cast(cut, exp.DataType.build("INT"))


def are_compatible(left: ComputedString, right: ComputedString) -> Sql:
    """Return the condition that two strings are argument-compatible, as SPARQL defines it."""
    same = equal(left.tag, right.tag)
    without = negate(sql.present(right.tag))
    return every(sql.present(left.value), sql.present(right.value), some(without, same))


def str_before(bind: BindSql, value: Value, part: Value) -> Value:
    left, right, at = _find_part(value, part, bind)
    made = call("SUBSTRING", left.value, number(1), sql.binary(exp.Sub, at, number(1)))
    return _part(left, right, at, made, bind)


def str_after(bind: BindSql, value: Value, part: Value) -> Value:
    left, right, at = _find_part(value, part, bind)
    made = call("SUBSTRING", left.value, sql.binary(exp.Add, at, sql.length(right.value)))
    return _part(left, right, at, made, bind)


def _find_part(value: Value, part: Value, bind: BindSql) -> tuple[ComputedString, ComputedString, Sql]:
    left, right = as_string(value, bind), as_string(part, bind)
    if is_null(left.value) or is_null(right.value):
        return ComputedString(null()), ComputedString(null()), null()
    empty = equal(right.value, text(""))
    return left, right, bind(case((empty, number(1)), default=call("TW_POSITION", left.value, right.value)))


def _part(left: ComputedString, right: ComputedString, at: Sql, made: Sql, bind: BindSql) -> Value:
    """Keep the tag if the part was found; otherwise return the empty string without a tag."""
    if is_null(at):
        return ComputedString(null())
    here = sql.compare(">", at, number(0))
    inner = case((here, made), default=text(""))
    return tagged_string(
        bind(case((are_compatible(left, right), inner))),
        bind(case((here, left.tag))) if (not is_null(left.tag)) else null(),
    )


def lang_matches(bind: BindSql, value: Value, wanted: Value) -> Value:
    """Compile LANGMATCHES by basic filtering (RFC 4647): the range is the tag or starts it, at a hyphen; `*` is any
    tag."""
    tag = bind(call("LOWER", plain_string(value, bind)))
    span = bind(call("LOWER", plain_string(wanted, bind)))
    any_tag = equal(span, text("*"))
    prefix = call("TW_STARTS", tag, sql.concat(span, text("-")))
    starts = every(sql.compare("!=", span, text("")), prefix)
    matched = case((any_tag, sql.compare("!=", tag, text(""))), default=some(equal(tag, span), starts))
    return ComputedBoolean(case((every(sql.present(tag), sql.present(span)), matched)))


def strlang(bind: BindSql, value: Value, tag: Value) -> Value:
    """The tag in lower case, as all are."""
    name = plain_string(tag, bind)
    lexical = plain_string(value, bind)
    valid = call("TW_FULL_MATCH", name, text(_TAG))
    return ComputedString(bind(case((valid, lexical))), frozenset({Family.TAGGED}), bind(call("LOWER", name)))


def match_regex(value: Value, pattern: Value, flags: Value | None = None) -> Value:
    """A pattern or flags that are none are an error."""
    known = [pattern, *([flags] if flags else [])]
    fits = every(value.among(*STRINGS), *(each.among(Family.STRING) for each in known))
    wanted = text("") if flags is None else flags.narrow(Family.STRING).string()
    strings = (value.narrow(*STRINGS).string(), pattern.narrow(Family.STRING).string())
    return ComputedBoolean(case((fits, call("TW_REGEX", *strings, wanted))))


def replace_matches(bind: BindSql, value: Value, pattern: Value, by: Value, flags: Value | None = None) -> Value:
    given = as_string(value, bind)
    parts: list[Sql] = [
        plain_string(pattern, bind),
        plain_string(by, bind),
        text("") if flags is None else plain_string(flags, bind),
    ]
    if is_null(given.value) or any(is_null(each) for each in parts):
        return ComputedString(null())
    return tagged_string(bind(call("TW_REPLACE", given.value, *parts)), given.tag)


def make_digest(name: str) -> Callable[[BindSql, Value], Value]:
    """Return the digest of a string without a tag; an error for anything else."""
    return lambda bind, value: ComputedString(bind(call(f"TW_{name.upper()}", plain_string(value, bind))))


_CHARACTER = r'[^\x00-\x20<>"{}|^`\\]'
_ABSOLUTE = rf"[A-Za-z][A-Za-z0-9+.\-]*:{_CHARACTER}*"
_PARTS = re.compile(r"(([^:/?#]+:)(//[^/?#]*)?)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)


def make_iri(bind: BindSql, value: Value, base: Value | None = None) -> Value:
    """Compile IRI(): an IRI is returned as it is, a string is resolved against the base."""
    if value.families <= {Family.IRI}:
        return value
    start = base.static.lexical if isinstance(base, ConstantValue) else ""
    given = plain_string(value, bind)
    if isinstance(value, ConstantValue) and value.static.family == Family.STRING:
        return ComputedIri(_constant_iri(value.static.lexical, start))
    found = null() if is_null(given) else _build_iri(given, start)
    same = value.narrow(Family.IRI).string() if Family.IRI in value.families else null()
    return ComputedIri(bind(case((value.among(Family.IRI), same), default=found)))


def _constant_iri(lexical: str, base: str) -> Sql:
    whole = lexical if re.fullmatch(_ABSOLUTE, lexical) else resolve_iri(base, lexical)
    return text(whole) if re.fullmatch(_ABSOLUTE, whole) else null()


def resolve_iri(base: str, reference: str) -> str:
    """Resolve a relative reference against a base, whatever its scheme."""
    scheme, colon, rest = base.partition("#")[0].partition(":")
    if not colon:
        return reference
    return scheme + urljoin(f"http:{rest}", reference).removeprefix("http")


def _build_iri(given: Sql, base: str) -> Sql:
    absolute = call("TW_FULL_MATCH", given, text(_ABSOLUTE))
    parts = _PARTS.fullmatch(base)
    if parts is None:
        return case((absolute, given))
    return case(
        (absolute, given), (call("TW_FULL_MATCH", given, text(f"{_CHARACTER}*")), _merge_reference(given, parts))
    )


def _merge_reference(given: Sql, parts: re.Match[str]) -> Sql:
    """Resolve a reference as RFC 3986 says, without removing dot segments."""
    root, scheme, path, query = parts[1], parts[2], parts[4], parts[5] or ""
    folder = path.rpartition("/")[0] + "/"
    starts = (("//", scheme), ("/", root), ("?", root + path), ("#", root + path + query))
    return case(
        (equal(given, text("")), text(root + path + query)),
        *((call("TW_STARTS", given, text(start)), sql.concat(text(before), given)) for start, before in starts),
        default=sql.concat(text(root + folder), given),
    )


def make_uuid(bind: BindSql, serial: int) -> Value:
    return ComputedIri(bind(sql.concat(text("urn:uuid:"), call("TW_UUID", number(serial)))))


def make_struuid(bind: BindSql, serial: int) -> Value:
    return ComputedString(bind(call("TW_UUID", number(serial))))


def fresh_blank_node(bind: BindSql, serial: int) -> Value:
    """BNODE(): another node in each solution, and for each call."""
    return ComputedBlank(
        bind(sql.concat(text("b"), call("REPLACE", call("TW_UUID", number(serial)), text("-"), text(""))))
    )


def labelled_blank_node(bind: BindSql, value: Value, solution: Sql | None) -> Value:
    """BNODE of a string: one node for each string in each solution."""
    label = plain_string(value, bind)
    if is_null(label):
        return Value()
    within = text("") if solution is None else cast(solution, sql.VARCHAR)
    return ComputedBlank(bind(sql.concat(text("b"), within, text("x"), call("TW_MD5", label))))
