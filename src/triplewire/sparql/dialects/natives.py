"""Natives: what DuckDB has no function for, as functions over columns of Arrow."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from triplewire.sparql.dialects.regexes import InvalidPattern, translated
from triplewire.sparql.dialects.replacements import replacement

Column = Any
"""A `pyarrow.ChunkedArray` of strings; pyarrow is loaded when the first function runs."""


def _mapped(make: Callable[..., str | None], *columns: Column) -> Column:
    """NULL where an argument is NULL."""
    import pyarrow

    rows = zip(*(each.to_pylist() for each in columns), strict=True)
    return pyarrow.array([None if None in row else make(*row) for row in rows], pyarrow.string())


def _of_one(make: Callable[[str], str]) -> Callable[[Column], Column]:
    return lambda column: _mapped(make, column)


def _pattern(pattern: str, flags: str) -> str | None:
    try:
        return translated(pattern, flags, "re2").text
    except InvalidPattern:
        return None


def _replacement(pattern: str, text: str, flags: str) -> str | None:
    try:
        return replacement(text, translated(pattern, flags, "re2").groups, flags, "re2")
    except InvalidPattern:
        return None


def _digits(written: str) -> str:
    """A number that is written with an exponent, or is none, as XML Schema has it, in plain digits."""
    if written in _NAMES:
        return _NAMES[written]
    plain = format(Decimal(written), "f")
    return plain.removesuffix(".0")


_NAMES = {"nan": "NaN", "-nan": "NaN", "inf": "INF", "-inf": "-INF"}


NATIVES: Mapping[str, tuple[int, Callable[..., Column]]] = {
    "tw_sha384": (1, _of_one(lambda text: hashlib.sha384(text.encode()).hexdigest())),
    "tw_sha512": (1, _of_one(lambda text: hashlib.sha512(text.encode()).hexdigest())),
    "tw_upper": (1, _of_one(str.upper)),
    "tw_lower": (1, _of_one(str.lower)),
    "tw_digits": (1, _of_one(_digits)),
    "tw_pattern": (2, lambda pattern, flags: _mapped(_pattern, pattern, flags)),
    "tw_replacement": (3, lambda pattern, text, flags: _mapped(_replacement, pattern, text, flags)),
}
"""Each with the number of its arguments; all take and give strings."""
