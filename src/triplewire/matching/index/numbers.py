"""Parsers for numbers and instants in the bytes of a term.

Only values that a double holds exactly are parsed: at most fifteen digits, small exponents, times with a zone to the
microsecond. Anything else is `UNDECIDED`, and the evaluator decides.
"""

from __future__ import annotations

import numpy as np

from triplewire.kernels.arrays import Bytes
from triplewire.kernels.compiler import compiled
from triplewire.kernels.words import hash_bytes, hash_text
from triplewire.model.terms import XSD
from triplewire.sparql.constants import INTEGERS

NONE, DECIDED, UNDECIDED = 0, 1, 2
"""Results of parsing: not a number (or instant); this value; perhaps one."""

_MARK = np.frombuffer(f'"^^<{XSD}'.encode(), np.uint8)
_INTEGERS = np.array([hash_text(name) for name in ("integer", *INTEGERS)], np.uint64)
_DECIMAL, _DOUBLE, _FLOAT = (np.uint64(hash_text(name)) for name in ("decimal", "double", "float"))
_DATETIME = np.uint64(hash_text("dateTime"))
_POWERS = np.array([10.0**each for each in range(23)])
_EXACT_DIGITS = 15
_QUOTE, _PLUS, _MINUS, _POINT, _ZERO, _NINE = 34, 43, 45, 46, 48, 57
_DAYS = np.array([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


@compiled
def closing_quote(data: Bytes, start: int, stop: int) -> int:
    """The offset of the quotation mark that closes the body of a literal with an XML Schema datatype; -1 for other
    terms."""
    if stop - start < len(_MARK) + 3 or data[start] != _QUOTE or data[stop - 1] != 62:
        return -1
    at = stop - 2
    while at > start and data[at] != _QUOTE:
        at -= 1
    if at == start or stop - at <= len(_MARK):
        return -1
    for offset in range(len(_MARK)):
        if data[at + offset] != _MARK[offset]:
            return -1
    return at


@compiled
def datatype_hash(data: Bytes, end: int, stop: int) -> np.uint64:
    """The hash of the local name of the datatype."""
    return hash_bytes(data, end + len(_MARK), stop - 1)


@compiled
def is_digit(byte: int) -> bool:
    return _ZERO <= byte <= _NINE


@compiled
def parse_number(data: Bytes, start: int, stop: int) -> tuple[int, float]:
    end = closing_quote(data, start, stop)
    if end < 0:
        return NONE, 0.0
    kind = datatype_hash(data, end, stop)
    if kind == _DECIMAL:
        return _parse_decimal(data, start + 1, end, True, False)
    if kind == _DOUBLE:
        return _parse_decimal(data, start + 1, end, True, True)
    if kind == _FLOAT:
        return UNDECIDED, 0.0
    for each in _INTEGERS:
        if kind == each:
            return _parse_decimal(data, start + 1, end, False, False)
    return NONE, 0.0


@compiled
def _parse_decimal(data: Bytes, at: int, stop: int, fraction: bool, exponent: bool) -> tuple[int, float]:
    """Parse digits, with a point and an exponent if they are allowed."""
    negative = at < stop and data[at] == _MINUS
    if at < stop and (data[at] == _PLUS or data[at] == _MINUS):
        at += 1
    mantissa, digits, behind, seen, pointed = 0, 0, 0, False, False
    while at < stop:
        byte = data[at]
        if is_digit(byte):
            seen = True
            digits += 1 if digits > 0 or byte != _ZERO else 0
            if digits > _EXACT_DIGITS:
                return UNDECIDED, 0.0
            mantissa = mantissa * 10 + (byte - _ZERO)
            behind += 1 if pointed else 0
        elif byte == _POINT and fraction and not pointed:
            pointed = True
        else:
            break
        at += 1
    power = 0
    if at < stop and exponent:
        # Exponents, INF and NaN: the evaluator decides whether they are well formed.
        if not seen or (data[at] | 32) != 101 or stop - at > 4:
            return UNDECIDED, 0.0
        at += 1
        down = at < stop and data[at] == _MINUS
        if at < stop and (data[at] == _PLUS or data[at] == _MINUS):
            at += 1
        if at == stop:
            return NONE, 0.0
        while at < stop:
            if not is_digit(data[at]):
                return NONE, 0.0
            power = power * 10 + (data[at] - _ZERO)
            at += 1
        power = -power if down else power
    if not seen or at < stop:
        return NONE, 0.0
    power -= behind
    if power < -22 or power > 22:
        return (DECIDED, 0.0) if mantissa == 0 else (UNDECIDED, 0.0)
    value = mantissa / _POWERS[-power] if power < 0 else mantissa * _POWERS[power]
    return DECIDED, -value if negative else value


@compiled
def parse_instant(data: Bytes, start: int, stop: int) -> tuple[int, float]:
    """Parse a dateTime with a zone into microseconds since 1970 UTC."""
    end = closing_quote(data, start, stop)
    if end < 0 or datatype_hash(data, end, stop) != _DATETIME:
        return NONE, 0.0
    first = start + 1
    if end - first < 20 or not _has_punctuation(data, first):
        return UNDECIDED, 0.0
    year, month, day = (
        _parse_digits(data, first, 4),
        _parse_digits(data, first + 5, 2),
        _parse_digits(data, first + 8, 2),
    )
    hour, minute, second = (
        _parse_digits(data, first + 11, 2),
        _parse_digits(data, first + 14, 2),
        _parse_digits(data, first + 17, 2),
    )
    if min(year, month, day, hour, minute, second) < 0 or hour > 23 or minute > 59 or second > 59:
        return UNDECIDED, 0.0
    if month < 1 or month > 12 or day < 1 or day > _DAYS[month - 1] or (month == 2 and day == 29) or year < 1:
        return UNDECIDED, 0.0
    at, micros = _parse_fraction(data, first + 19, end)
    offset = _parse_zone(data, at, end) if at > 0 else -10_000
    if offset == -10_000:
        return UNDECIDED, 0.0
    minutes = (_day_number(year, month, day) * 24 + hour) * 60 + minute - offset
    return DECIDED, (minutes * 60.0 + second) * 1_000_000.0 + micros


@compiled
def _has_punctuation(data: Bytes, first: int) -> bool:
    dashes = data[first + 4] == _MINUS and data[first + 7] == _MINUS
    return dashes and data[first + 10] == 84 and data[first + 13] == 58 and data[first + 16] == 58


@compiled
def _parse_digits(data: Bytes, at: int, count: int) -> int:
    value = 0
    for each in range(at, at + count):
        if not is_digit(data[each]):
            return -1
        value = value * 10 + (data[each] - _ZERO)
    return value


@compiled
def _parse_fraction(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Parse a fraction into microseconds. Return the offset behind it, or 0 if it has more than six digits."""
    if data[at] != _POINT:
        return at, 0
    micros, count, at = 0, 0, at + 1
    while at < end and is_digit(data[at]):
        micros = micros * 10 + (data[at] - _ZERO)
        count += 1
        at += 1
    if count == 0 or count > 6:
        return 0, 0
    for _ in range(6 - count):
        micros *= 10
    return at, micros


@compiled
def _parse_zone(data: Bytes, at: int, end: int) -> int:
    """Minutes east of Greenwich; -10000 if there is no zone, or an invalid one."""
    if end - at == 1 and data[at] == 90:
        return 0
    if end - at != 6 or data[at + 3] != 58 or (data[at] != _PLUS and data[at] != _MINUS):
        return -10_000
    hours, minutes = _parse_digits(data, at + 1, 2), _parse_digits(data, at + 4, 2)
    if hours < 0 or hours > 13 or minutes < 0 or minutes > 59:
        return -10_000
    offset = hours * 60 + minutes
    return -offset if data[at] == _MINUS else offset


@compiled
def _day_number(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar."""
    shifted = year - 1 if month <= 2 else year
    era = shifted // 400
    of_era = shifted - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
