"""Casts: the constructors of XML Schema's types. None is an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal

from triplewire.matching.singles.comparisons import effective
from triplewire.matching.singles.facts import (
    DECIMAL,
    FALSE,
    FLOATING,
    FRACTION,
    INTEGER,
    TRUE,
    WHOLE,
    Fact,
    Undecided,
    boolean,
    lexical_of,
    made_text,
    string,
)
from triplewire.matching.singles.numbers import NUMERIC, exactly, floating
from triplewire.matching.singles.strings import plain
from triplewire.model.terms import XSD
from triplewire.sparql.algebra import Family

_TRUTHS = {"true": TRUE, "1": TRUE, "false": FALSE, "0": FALSE}
_NEAR = (1e-4, 1e15)
"""Doubles between these are written without an exponent."""


def to_string(given: Fact) -> Fact | None:
    """The canonical form of numbers and booleans, the text of all else but blank nodes."""
    if given.family is Family.BLANK:
        return None
    if given.family is Family.BOOLEAN:
        return string("true" if given.truth else "false")
    if given.family in NUMERIC:
        return string(made_text(given).split('"')[1])
    if given.family is None:
        raise Undecided
    return string(lexical_of(given))


def to_boolean(given: Fact) -> Fact | None:
    if given.family is Family.BOOLEAN or given.family in NUMERIC:
        return boolean(effective(given))
    return _TRUTHS.get(_trimmed(given) or "")


def to_integer(given: Fact) -> Fact | None:
    """What is behind the point is cut off."""
    if given.family is Family.EXACT and given.exact is not None:
        return exactly(Decimal(math.trunc(given.exact)), WHOLE)
    if given.family is Family.DOUBLE and not given.rough:
        return exactly(Decimal(math.trunc(given.number)), WHOLE)
    read = _read(given, INTEGER.fullmatch)
    return None if read is None else exactly(Decimal(read), WHOLE)


def to_decimal(given: Fact) -> Fact | None:
    if given.family is Family.EXACT and given.exact is not None:
        return exactly(given.exact, DECIMAL)
    if given.family is Family.DOUBLE and not given.rough and _NEAR[0] <= abs(given.number) < _NEAR[1]:
        return exactly(Decimal(repr(given.number)), DECIMAL)
    read = _read(given, FRACTION.fullmatch)
    return None if read is None else exactly(Decimal(read), DECIMAL)


def to_double(given: Fact) -> Fact | None:
    if given.family in NUMERIC:
        return floating(given.number, rough=given.rough)
    read = _read(given, FLOATING.fullmatch)
    return None if read is None else floating(float(read))


def _read(given: Fact, fits: Callable[[str], object]) -> str | None:
    """The digits of a boolean or of a string of plain form; None for what is surely no number."""
    if given.family in NUMERIC:
        raise Undecided
    if given.family is Family.BOOLEAN:
        return "1" if given.truth else "0"
    lexical = _trimmed(given)
    if lexical is None or fits(lexical):
        return lexical
    if any(each.isdigit() for each in lexical) or lexical.strip("+-").lower() in ("inf", "infinity", "nan"):
        raise Undecided
    return None


def _trimmed(given: Fact) -> str | None:
    """The text of a string, without the blanks around it, which XML Schema does not see."""
    found = plain(given)
    if found is None and given.family is None:
        raise Undecided
    return None if found is None else found.strip(" \t\n\r")


_CASTS: Mapping[str, Callable[[Fact], Fact | None]] = {
    "string": to_string,
    "boolean": to_boolean,
    "integer": to_integer,
    "decimal": to_decimal,
    "double": to_double,
}


def _of_error(cast: Callable[[Fact], Fact | None]) -> Callable[[Fact | None], Fact | None]:
    return lambda given: None if given is None else cast(given)


CASTS: Mapping[str, Callable[[Fact | None], Fact | None]] = {
    f"<{XSD}{name}>": _of_error(cast) for name, cast in _CASTS.items()
}
"""By the name that the algebra gives them."""
