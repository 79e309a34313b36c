"""Addresses: IRIs, identifiers and blank nodes that expressions make."""

from __future__ import annotations

import re
from urllib.parse import urljoin

from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.arithmetic import Bind
from triplewire.sparql.compile.computed import Address, Blank, Text
from triplewire.sparql.compile.sql import VARCHAR, Sql, call, case, cast, concat, equal, is_null, null, number, text
from triplewire.sparql.compile.statics import Known
from triplewire.sparql.compile.strings import plain
from triplewire.sparql.compile.values import Value

_CHARACTER = r'[^\x00-\x20<>"{}|^`\\]'
_ABSOLUTE = rf"[A-Za-z][A-Za-z0-9+.\-]*:{_CHARACTER}*"
_PARTS = re.compile(r"(([^:/?#]+:)(//[^/?#]*)?)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)


def iri(bind: Bind, value: Value, base: Value | None = None) -> Value:
    """Of an IRI itself; of a string the IRI that it is, or that it refers to from the base."""
    if value.families <= {Family.IRI}:
        return value
    start = base.static.lexical if isinstance(base, Known) else ""
    given = plain(value, bind)
    if isinstance(value, Known) and value.static.family == Family.STRING:
        return Address(_constant(value.static.lexical, start))
    found = null() if is_null(given) else _made(given, start)
    same = value.narrowed(Family.IRI).string() if Family.IRI in value.families else null()
    return Address(bind(case((value.among(Family.IRI), same), default=found)))


def _constant(lexical: str, base: str) -> Sql:
    whole = lexical if re.fullmatch(_ABSOLUTE, lexical) else resolved(base, lexical)
    return text(whole) if re.fullmatch(_ABSOLUTE, whole) else null()


def resolved(base: str, reference: str) -> str:
    """What a relative reference names from the base. Joins also where the scheme is not one of the web's."""
    scheme, colon, rest = base.partition("#")[0].partition(":")
    if not colon:
        return reference
    return scheme + urljoin(f"http:{rest}", reference).removeprefix("http")


def _made(given: Sql, base: str) -> Sql:
    absolute = call("TW_FULL_MATCH", given, text(_ABSOLUTE))
    parts = _PARTS.fullmatch(base)
    if parts is None:
        return case((absolute, given))
    return case(
        (absolute, given),
        (call("TW_FULL_MATCH", given, text(f"{_CHARACTER}*")), _merged(given, parts)),
    )


def _merged(given: Sql, parts: re.Match[str]) -> Sql:
    """By the rules of RFC 3986, but for segments of dots, which stay."""
    root, scheme, path, query = parts[1], parts[2], parts[4], parts[5] or ""
    folder = path.rpartition("/")[0] + "/"
    starts = (("//", scheme), ("/", root), ("?", root + path), ("#", root + path + query))
    return case(
        (equal(given, text("")), text(root + path + query)),
        *((call("TW_STARTS", given, text(start)), concat(text(before), given)) for start, before in starts),
        default=concat(text(root + folder), given),
    )


def uuid(bind: Bind, serial: int) -> Value:
    return Address(bind(concat(text("urn:uuid:"), call("TW_UUID", number(serial)))))


def struuid(bind: Bind, serial: int) -> Value:
    return Text(bind(call("TW_UUID", number(serial))))


def fresh(bind: Bind, serial: int) -> Value:
    """BNODE(): another node in each solution, and for each call."""
    return Blank(bind(concat(text("b"), call("REPLACE", call("TW_UUID", number(serial)), text("-"), text("")))))


def blank(bind: Bind, value: Value, solution: Sql | None) -> Value:
    """BNODE of a string: one node for each string in each solution."""
    label = plain(value, bind)
    if is_null(label):
        return Value()
    within = text("") if solution is None else cast(solution, VARCHAR)
    return Blank(bind(concat(text("b"), within, text("x"), call("TW_MD5", label))))
