"""Rules: how zones are balanced, as it is written in settings and on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from triplewire.errors import InputError
from triplewire.lake.balance import Balance
from triplewire.lake.criteria import Criterion, criteria


def balance_of(texts: Iterable[str]) -> Balance:
    """Of texts such as `zones=64` and `criteria=quads:1.5:0.5,reads:4:0`; what is not said is as usual. Raises
    InputError that names what is wrong, and what would be right."""
    return Balance(**dict(map(_rule, texts)))


def _rule(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or name not in _KINDS:
        raise InputError(f"{text!r} is no rule of balance; say NAME=VALUE with one of {', '.join(_KINDS)}")
    try:
        return name, _KINDS[name](value)
    except ValueError:
        raise InputError(f"{text!r}: {value!r} is not {_WORDS[name]}") from None


def _criteria(text: str) -> tuple[Criterion, ...]:
    return criteria(text.replace(",", " "))


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(each) for each in text.split(","))


_KINDS: Mapping[str, Callable[[str], Any]] = {
    "strategy": str,
    "zones": int,
    "criteria": _criteria,
    "estimates": _numbers,
    "cut": str,
    "dimensions": str,
    "transformation": str,
    "smallest": int,
}
_WORDS = {"zones": "a whole number", "smallest": "a whole number", "estimates": "numbers with commas between them"}
