"""Fractions: keys as numbers between 0 and 1 in radix 1,114,112, a digit for each code point.

This is how EventCloud computes with places in its space. Means are exact; as bounds they are made of characters that
every engine takes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from triplewire.config import limits
from triplewire.lake.boxes import Interval

RADIX = sys.maxunicode + 1


def middle(side: Interval, space: Interval) -> str | None:
    """The mean of an interval's bounds, those of the space where it has none. None if no text lies between."""
    least, below = side.least, side.below
    if least < space.least and (below is None or space.least < below):
        least = space.least
    if below is None:
        below = space.below if space.below is not None and space.below > least else chr(sys.maxunicode)
    width = max(len(least), len(below)) + 1
    return _inside(side, (_whole(least, width) + _whole(below, width)) // 2, width)


def mean(keys: Sequence[str], weights: npt.ArrayLike, side: Interval) -> str | None:
    """The mean of keys, as far as their first characters tell. None if it is no bound inside the interval."""
    width = limits.CENTROID_CHARACTERS
    digits = np.array(keys, dtype=f"U{width}").view(np.uint32).reshape(len(keys), width)
    # In whole thousandths, so that sums are exact however long they grow.
    parts = np.maximum(1, np.rint(np.asarray(weights) * 1_000)).astype(np.int64)
    sums = (digits.astype(np.int64) * parts[:, None]).sum(axis=0).tolist()
    total = 0
    for each in sums:
        total = total * RADIX + each
    return _inside(side, total // int(parts.sum()), width)


def _whole(text: str, width: int) -> int:
    found = 0
    for place in range(width):
        found = found * RADIX + (ord(text[place]) if place < len(text) else 0)
    return found


def _inside(side: Interval, value: int, width: int) -> str | None:
    """The fraction as a bound inside the interval."""
    digits = []
    for _ in range(width):
        value, digit = divmod(value, RADIX)
        digits.append(digit)
    exact = digits[::-1]
    # A text has neither halves of surrogate pairs nor, for the sake of engines, a zero; its neighbours do as well.
    over = "".join(chr(0xE000 if 0xD800 <= digit < 0xE000 else digit or 1) for digit in exact)
    under = "".join(chr(0xD7FF if 0xD800 <= digit < 0xE000 else digit) for digit in exact).split("\0")[0]
    return next((bound for bound in (under, over) if side.cuts(bound)), None)
