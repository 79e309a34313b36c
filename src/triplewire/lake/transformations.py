"""Transformations: other orders of terms, for data whose terms start alike.

EventCloud's upstream balancing. They spread what lies close together in the order of texts, and cost what that order
gives: a range of texts then lies everywhere. Numbers and times keep their order with all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from triplewire.errors import InputError
from triplewire.lake.keys import NUMBER, TIME
from triplewire.sparql.compile.sql import Sql, call, case, concat, every, negate, number, text

_LOCAL = "[^/#<]*>$"
"""What follows the last slash or hash of an IRI, or all of it but its opening bracket."""


@dataclass(frozen=True)
class Transformation:
    """Another order. `of_key` and `of_column` say the same, the one in Python, the other in SQL of a term's text."""

    name: str
    costs: str
    of_key: Callable[[str], str]
    of_column: Callable[[Sql], Sql]


def _is_typed(found: str) -> bool:
    return found[:1] in (NUMBER, TIME)


def _without_prefix(found: str) -> str:
    if _is_typed(found) or not found.startswith("<") or found.startswith("<<"):
        return found
    local = re.search(_LOCAL, found)
    return "<" + (local[0] if local else "")


def _prefix_column(column: Sql) -> Sql:
    is_iri = every(call("TW_STARTS", column, text("<")), negate(call("TW_STARTS", column, text("<<"))))
    return case((is_iri, concat(text("<"), call("TW_EXTRACT", column, text(_LOCAL), number(0)))), default=column)


def _reversed(found: str) -> str:
    return found if _is_typed(found) else found[:1] + found[:0:-1]


def _reversed_column(column: Sql) -> Sql:
    first = call("SUBSTRING", column, number(1), number(1))
    return concat(first, call("TW_REVERSED", call("SUBSTRING", column, number(2))))


TRANSFORMATIONS: Mapping[str, Transformation] = {
    each.name: each
    for each in (
        Transformation(
            "none",
            "Terms lie in their own order: constants, prefixes and ranges read only the zones that they touch.",
            lambda found: found,
            lambda column: column,
        ),
        Transformation(
            "prefix",
            "IRIs lie by what follows their last / or #. Constants, numbers and times read only the zones that they "
            "touch; a prefix or a range of IRIs touches every zone.",
            _without_prefix,
            _prefix_column,
        ),
        Transformation(
            "reversed",
            "Terms lie by their texts from the end. Constants, numbers and times read only the zones that they touch; "
            "a prefix or a range of texts touches every zone.",
            _reversed,
            _reversed_column,
        ),
    )
}


def transformation(name: str) -> Transformation:
    """The transformation of a name. Raises InputError for an unknown one."""
    if name not in TRANSFORMATIONS:
        raise InputError(f"there is no transformation {name!r}; there are {', '.join(TRANSFORMATIONS)}")
    return TRANSFORMATIONS[name]
