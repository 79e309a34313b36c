"""Criteria: by what the load of a zone is measured, and when it is too much or too little."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from triplewire.errors import InputError


@dataclass(frozen=True)
class Load:
    """What a zone has to bear: quads and bytes that it holds, and how often it was read."""

    quads: float = 0.0
    bytes: float = 0.0
    reads: float = 0.0

    def __add__(self, other: Load) -> Load:
        return Load(self.quads + other.quads, self.bytes + other.bytes, self.reads + other.reads)

    def __mul__(self, share: float) -> Load:
        return Load(self.quads * share, self.bytes * share, self.reads * share)


MEASURES: Mapping[str, Callable[[Load], float]] = {
    "quads": lambda load: load.quads,
    "bytes": lambda load: load.bytes,
    "reads": lambda load: load.reads,
}
"""Another criterion is another line here."""


@dataclass(frozen=True)
class Criterion:
    """A measure, and the bounds of what is normal: from `over` times the estimate on a zone is overloaded, under
    `under` times the estimate it is underloaded. These are K1 and K2."""

    name: str = "quads"
    over: float = 1.5
    under: float = 0.5

    def __post_init__(self) -> None:
        if self.name not in MEASURES:
            raise InputError(f"there is no criterion {self.name!r}; there are {', '.join(MEASURES)}")
        if self.over <= 0 or self.under < 0:
            raise InputError(f"K1={self.over} must be over 0 and K2={self.under} must not be under it ({self.name})")
        if self.over < self.under:
            raise InputError(
                f"K1={self.over} is under K2={self.under} ({self.name}): a zone would be split and merged in turn; "
                "K1 must be at least K2"
            )

    def of(self, load: Load) -> float:
        return MEASURES[self.name](load)


@dataclass(frozen=True)
class Verdict:
    """How a zone is loaded, by which criterion, and how many times the estimate that is."""

    state: Literal["overloaded", "underloaded", "normal"]
    criterion: int = 0
    ratio: float = 1.0


def verdict(load: Load, estimates: Sequence[float], criteria: Sequence[Criterion]) -> Verdict:
    """By the first criterion that finds a load not normal: their order is their priority. An estimate of 0 says
    that nothing is there to be balanced."""
    for number, (criterion, estimate) in enumerate(zip(criteria, estimates, strict=True)):
        measured = criterion.of(load)
        ratio = measured / estimate if estimate else 1.0
        if estimate and measured >= estimate * criterion.over:
            return Verdict("overloaded", number, ratio)
        if measured < estimate * criterion.under:
            return Verdict("underloaded", number, ratio)
    return Verdict("normal")


def criteria(text: str) -> tuple[Criterion, ...]:
    """Criteria as they are written: `quads`, or `quads:1.5:0.5 reads:4:0` with K1 and K2 of each. The first comes
    first. Raises InputError."""
    return tuple(_criterion(each) for each in text.split())


def _criterion(text: str) -> Criterion:
    name, *bounds = text.split(":")
    try:
        values = [float(each) for each in bounds]
    except ValueError:
        values = [0.0] * 3
    if len(values) not in (0, 2):
        raise InputError(f"{text!r} is no criterion; it is written as quads, or as quads:1.5:0.5 with K1 and K2")
    return Criterion(name, *values)
