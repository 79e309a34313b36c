"""Aggregates: the set functions of SPARQL over the values of a group. None among them, or as a result, is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from triplewire.matching.singles.comparisons import order_key
from triplewire.matching.singles.facts import Fact, Undecided, lexical_of, string, text_of
from triplewire.matching.singles.numbers import counted, mean, numeric, total
from triplewire.sparql.algebra import Family

Values = Sequence[Fact | None]


def count(given: Values) -> Fact | None:
    """Errors are passed over."""
    return counted(sum(each is not None for each in given))


def _numeric(function: Callable[[list[Fact]], Fact]) -> Callable[[Values], Fact | None]:
    """SUM and AVG: an error if one of the group is no number."""

    def made(given: Values) -> Fact | None:
        found = [each for value in given if (each := numeric(value)) is not None]
        return function(found) if len(found) == len(given) else None

    return made


def _extreme(choose: Callable[..., tuple[object, str, Fact]]) -> Callable[[Values], Fact | None]:
    """MIN and MAX: one of the terms, as it is; of equal ones by their text."""

    def made(given: Values) -> Fact | None:
        known = [each for each in given if each is not None]
        if not known or len(known) < len(given):
            return None
        if len(known) == 1:
            return known[0]
        keyed = [(order_key(each), text_of(each), each) for each in known]
        return choose(keyed, key=lambda each: each[:2])[2]

    return made


def _sample(given: Values) -> Fact | None:
    """The least by its text."""
    return min((each for each in given if each is not None), key=text_of, default=None)


def group_concat(given: Values, separator: str) -> Fact | None:
    """The order of a group is nowhere said, so that only what is the same in any is known."""
    if any(each is None or each.family is Family.BLANK for each in given):
        return None
    found = [lexical_of(each) for each in given if each is not None]
    if len(set(found)) > 1:
        raise Undecided
    return string(separator.join(found))


AGGREGATES: Mapping[str, Callable[[Values], Fact | None]] = {
    "count": count,
    "sum": _numeric(total),
    "avg": _numeric(mean),
    "min": _extreme(min),
    "max": _extreme(max),
    "sample": _sample,
}


def distinct(given: Values) -> Values:
    """Each value once, by its text; all errors are one."""
    return [*{None if each is None else text_of(each): each for each in given}.values()]
