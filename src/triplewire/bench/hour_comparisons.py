"""The comparison of `bench hour`: the lake as it was after two minutes, and as it is in the end.

Both are asked in the end, in turn: the speed of a machine changes within an hour, and both meet the same one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from triplewire.bench.hour_questions import Asked, Asker

_ROUNDS = 15
_BEFORE = 3
"""Rounds that are not measured: in between, what was asked for is looked at, as it is when there are no queries."""

_Asked = Sequence[dict[str, Asked]]


def in_turn(first: Asker, last: Asker) -> dict[str, Any]:
    """What questions take of the one and of the other, how many times as long the other takes, and what it opens."""
    for _ in range(_BEFORE):
        for each in (first, last):
            each.ask()
            each.prepare()
    then, now = zip(*((first.ask(), last.ask()) for _ in range(_ROUNDS)), strict=True)
    return {
        "ms": _compared(then, now, "milliseconds"),
        "cpu_ms": _compared(then, now, "cpu"),
        "opened": {"after_two_minutes": medians(then, "files"), "at_the_end": medians(now, "files")},
    }


def _compared(then: _Asked, now: _Asked, measure: str) -> dict[str, Any]:
    first, last = medians(then, measure), medians(now, measure)
    return {"after_two_minutes": first, "at_the_end": last, "ratio": ratios(first, last)}


def medians(rounds: _Asked, measure: str) -> dict[str, float]:
    """By question, over the rounds."""
    names = rounds[0] if rounds else ()
    return {name: round(median(getattr(each[name], measure) for each in rounds), 1) for name in names}


def ratios(first: Mapping[str, float], last: Mapping[str, float]) -> dict[str, float]:
    """How many times as much the last is."""
    return {name: round(last[name] / max(value, 0.1), 2) for name, value in first.items()}
