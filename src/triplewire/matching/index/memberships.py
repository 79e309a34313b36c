"""Memberships: which group a subscription belongs to, and by which threshold it differs from the others of it.

They follow from shape and constants alone, so that whoever knows a subscription knows what its matches are called.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import numpy as np

from triplewire.matching.index.guarding import guard
from triplewire.matching.index.programs import Op
from triplewire.matching.index.writing import program
from triplewire.matching.shapes import Shape
from triplewire.model.terms import XSD
from triplewire.sparql.algebra import Family
from triplewire.sparql.compiler.facets import INTEGERS

_ABOVE = (Op.GREATER, Op.GREATER_EQUAL)
_DIGITS = 15
"""What a float tells apart of any numbers."""
_DECIMAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_EXACT = re.compile(rf'"({_DECIMAL})"\^\^<{re.escape(XSD)}(?:decimal|integer|{"|".join(INTEGERS)})>')
_DOUBLE = re.compile(rf'"({_DECIMAL}(?:[eE][+-]?[0-9]+)?)"\^\^<{re.escape(XSD)}double>')
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})"
_MOMENT = re.compile(rf'"({_TIME})"\^\^<{re.escape(XSD)}dateTime>')
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Membership:
    """`group` names the group in every process. A match of it concerns a member if its value passes the threshold."""

    group: int
    constants: tuple[str, ...]
    threshold: float = 0.0
    op: Op | None = None

    @property
    def above(self) -> bool:
        return self.op in _ABOVE

    def concerns(self, values: np.ndarray) -> np.ndarray:
        """For each value, whether it passes."""
        match self.op:
            case None:
                return np.ones(len(values), bool)
            case Op.GREATER:
                return values > self.threshold
            case Op.GREATER_EQUAL:
                return values >= self.threshold
            case Op.LESS:
                return values < self.threshold
        return values <= self.threshold


class Memberships:
    """Of the subscriptions of one shape. There are none where the index does not decide the shape."""

    def __init__(self, shape: Shape) -> None:
        self.program = program(shape)
        self._key = shape.key

    def of(self, constants: Sequence[str]) -> Membership | None:
        """None for a threshold that is more than the index decides: a long number, a time without a zone."""
        if self.program is None:
            return None
        limit = self.program.threshold
        if limit is None:
            kept = tuple(constants)
            return Membership(_named(self._key, kept), kept)
        value = _value(constants[limit.parameter], limit.family is Family.DATETIME)
        if value is None:
            return None
        kept = tuple("" if index == limit.parameter else text for index, text in enumerate(constants))
        return Membership(_named(self._key, kept), kept, value, limit.op)


class Guards:
    """Of the subscriptions of a shape that the index does not decide: an event that a group of theirs does not match is
    none of theirs. There are none where nothing is surely required."""

    def __init__(self, shape: Shape) -> None:
        made = guard(shape)
        self.program = None if made is None else made.program
        self.sure = made is None or made.sure
        """Whether nobody of the shape matches an event that it does not let through."""
        self._key = "guard " + shape.key
        self._read = set[int]() if self.program is None else self.program.parameters

    def of(self, constants: Sequence[str]) -> Membership:
        kept = tuple(text if index in self._read else "" for index, text in enumerate(constants))
        return Membership(_named(self._key, kept), kept)


def _named(key: str, constants: Sequence[str]) -> int:
    text = "\n".join((key, *constants)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


@lru_cache(maxsize=65_536)
def _value(term: str, timely: bool) -> float | None:
    return _moment(term) if timely else _number(term)


def _number(term: str) -> float | None:
    found = _DOUBLE.fullmatch(term)
    if found is not None:
        return float(found[1])
    found = _EXACT.fullmatch(term)
    if found is None or len(found[1].strip("+-").replace(".", "").lstrip("0")) > _DIGITS:
        return None
    return float(found[1])


def _moment(term: str) -> float | None:
    found = _MOMENT.fullmatch(term)
    try:
        return None if found is None else float((datetime.fromisoformat(found[1]) - _EPOCH) // _MICROSECOND)
    except ValueError:
        return None
