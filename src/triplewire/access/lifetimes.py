"""Lifetimes: for how long something is good, as people write it."""

from __future__ import annotations

import re

from triplewire.model.errors import BadRequest

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_WRITTEN = re.compile(r"([0-9]{1,6})([smhdw])")


def lifetime(text: str) -> int:
    """The microseconds that a text such as `30d` or `12h` says. Raises BadRequest."""
    found = _WRITTEN.fullmatch(text)
    if not found or not int(found[1]):
        raise BadRequest(f"{text!r} is no lifetime: say a number and s, m, h, d or w, such as 30d")
    return int(found[1]) * _UNITS[found[2]] * 1_000_000
