"""Memberships: which group a subscription belongs to, and by which threshold it differs from the others of it.

They follow from shape and constants alone, so that whoever knows a subscription knows what its matches are called.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from triplewire.matching.index.numbers import DECIDED, moment, number
from triplewire.matching.index.programs import Op, program
from triplewire.matching.shapes import Shape
from triplewire.sparql.algebra import Family

_ABOVE = (Op.GREATER, Op.GREATER_EQUAL)


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
        self._key = shape.key.encode()

    def of(self, constants: Sequence[str]) -> Membership | None:
        """None for a threshold that is more than the index decides: a long number, a time without a zone."""
        if self.program is None:
            return None
        limit = self.program.threshold
        if limit is None:
            kept = tuple(constants)
            return Membership(self._group(kept), kept)
        value = _value(constants[limit.parameter], limit.family is Family.DATETIME)
        if value is None:
            return None
        kept = tuple("" if index == limit.parameter else text for index, text in enumerate(constants))
        return Membership(self._group(kept), kept, value, limit.op)

    def _group(self, constants: Sequence[str]) -> int:
        text = b"\n".join((self._key, *(each.encode() for each in constants)))
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


@lru_cache(maxsize=65_536)
def _value(term: str, timely: bool) -> float | None:
    data = np.frombuffer(term.encode(), np.uint8)
    state, value = moment(data, 0, len(data)) if timely else number(data, 0, len(data))
    return value if state == DECIDED else None
