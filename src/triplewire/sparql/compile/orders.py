"""Orders: the keys by which ORDER BY, MIN and MAX sort any terms.

Unbound comes first, then blank nodes, IRIs and literals; of these numbers by value, times by instant, strings by code
point, booleans, and all others by their text.
"""

from __future__ import annotations

from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.sql import Sql, call, case, every, is_null, negate, number, text
from triplewire.sparql.compile.values import NUMERIC, STRINGS, TIMES, Value

_CLASSES: tuple[tuple[Family, ...], ...] = (
    (Family.BLANK,),
    (Family.IRI,),
    (Family.EXACT, Family.FLOAT, Family.DOUBLE),
    TIMES,
    STRINGS,
    (Family.BOOLEAN,),
    (Family.OTHER,),
)

_BY_TEXT = frozenset({Family.BLANK, Family.IRI, Family.OTHER})


def total_order_keys(value: Value) -> list[Sql]:
    """Keys to sort by, ascending, NULLs first. Equal values are told apart by their text."""
    return [*order_keys(value), value.text()] if value.families else []


def order_keys(value: Value) -> list[Sql]:
    """The same, but equal values have equal keys."""
    if not value.families:
        return []
    classes = [(place, group) for place, group in enumerate(_CLASSES) if value.families & set(group)]
    keys = [_place(value, classes)] if len(classes) > 1 else []
    return [*keys, *(key for key in _within(value) if not is_null(key))]


def _place(value: Value, classes: list[tuple[int, tuple[Family, ...]]]) -> Sql:
    """Which class it is in; the last one is what is left."""
    *rest, (last, _) = classes
    told = [(value.among(*group), number(place)) for place, group in rest]
    return case((negate(value.bound()), _unbound()), *told, default=number(last))


def _unbound() -> Sql:
    return number(-1)


def _within(value: Value) -> list[Sql]:
    """What is compared inside of a class, each NULL for terms of the others."""
    keys = []
    if value.families & NUMERIC:
        keys += [value.number(), _digits(value)]
    if value.families & set(TIMES):
        keys.append(value.time())
    if Family.BOOLEAN in value.families:
        keys.append(case((value.boolean(), number(1)), (negate(value.boolean()), number(0))))
    if value.families & set(STRINGS):
        keys.append(_string(value))
    return [*keys, *_texts(value)]


def _texts(value: Value) -> list[Sql]:
    """Of terms that have no value beside their text."""
    if not value.families & _BY_TEXT:
        return []
    return [value.text() if value.families <= _BY_TEXT else case((value.among(*_BY_TEXT), value.text()))]


def _digits(value: Value) -> Sql:
    """The exact value, where a double may not tell it from its neighbours."""
    return case((every(value.long(), value.among(Family.EXACT)), value.exact()))


def _string(value: Value) -> Sql:
    """The text without its escapes, which sort otherwise; NULL for what is no string."""
    if value.families <= set(STRINGS):
        return value.string()
    escaped = every(call("TW_CONTAINS", value.text(), text("\\")), value.among(*STRINGS))
    return case((escaped, value.string()), (value.among(*STRINGS), _unquoted(value)))


def _unquoted(value: Value) -> Sql:
    return call("SUBSTRING", value.text(), number(2))
