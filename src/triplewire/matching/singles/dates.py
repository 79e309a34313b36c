"""Dates: the parts of a time or date, in its own time zone."""

from __future__ import annotations

import re
from decimal import Decimal

from triplewire.matching.singles.facts import DECIMAL, WHOLE, Fact, Undecided, lexical_of
from triplewire.matching.singles.numbers import exactly
from triplewire.sparql.algebra import Family

_PLACES = {
    "year": slice(0, 4),
    "month": slice(5, 7),
    "day": slice(8, 10),
    "hours": slice(11, 13),
    "minutes": slice(14, 16),
}
_OF_DAYS = ("year", "month", "day")
_ZONE = re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}")


def part(name: str, given: Fact | None) -> Fact | None:
    """YEAR to SECONDS. The parts of the day are those of times only; seconds are decimals."""
    if given is None:
        return None
    if given.family is None:
        raise Undecided
    if given.family is not Family.DATETIME and not (given.family is Family.DATE and name in _OF_DAYS):
        return None
    lexical = lexical_of(given)
    if name == "seconds":
        return exactly(Decimal(_ZONE.split(lexical[17:])[0]), DECIMAL)
    return exactly(Decimal(lexical[_PLACES[name]]), WHOLE)
