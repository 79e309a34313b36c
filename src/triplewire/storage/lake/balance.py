"""Load balancing settings: how the load of a zone is measured, when it is too high or too low, and how zones are cut.

Settings are validated when they are made and parsed from the text of settings and of the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Final, Literal

from triplewire.model.errors import InputError
from triplewire.storage.lake.keys import find_transformation
from triplewire.storage.lake.splits import DIMENSION_CHOICES, RULES
from triplewire.storage.lake.zones import ALL_KEYS, KeyInterval

ZONES: Final = 128
"""Zones of the lake at most. More would tell a question with a constant more, one about an hour less: a zone has fewer
files then, of which each is a longer stretch of time. A compaction writes a file for each."""

ZONE_QUADS: Final = 32_768
"""Quads under which a zone is not split: a few files, which take some ten milliseconds to read."""


@dataclass(frozen=True)
class ZoneLoad:
    """The load of a zone: quads and bytes that it holds, and how often it was read."""

    quads: float = 0.0
    bytes: float = 0.0
    reads: float = 0.0

    def __add__(self, other: ZoneLoad) -> ZoneLoad:
        return ZoneLoad(self.quads + other.quads, self.bytes + other.bytes, self.reads + other.reads)

    def __mul__(self, share: float) -> ZoneLoad:
        return ZoneLoad(self.quads * share, self.bytes * share, self.reads * share)


MEASURES: Mapping[str, Callable[[ZoneLoad], float]] = {
    "quads": lambda load: load.quads,
    "bytes": lambda load: load.bytes,
    "reads": lambda load: load.reads,
}
"""Another criterion is another line here."""


@dataclass(frozen=True)
class LoadCriterion:
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

    def of(self, load: ZoneLoad) -> float:
        return MEASURES[self.name](load)


@dataclass(frozen=True)
class LoadVerdict:
    """How a zone is loaded, by which criterion, and how many times the estimate that is."""

    state: Literal["overloaded", "underloaded", "normal"]
    criterion: int = 0
    ratio: float = 1.0


def judge_load(load: ZoneLoad, estimates: Sequence[float], criteria: Sequence[LoadCriterion]) -> LoadVerdict:
    """By the first criterion that finds a load not normal: their order is their priority. An estimate of 0 says
    that nothing is there to be balanced."""
    for number, (criterion, estimate) in enumerate(zip(criteria, estimates, strict=True)):
        measured = criterion.of(load)
        ratio = measured / estimate if estimate else 1.0
        if estimate and measured >= estimate * criterion.over:
            return LoadVerdict("overloaded", number, ratio)
        if measured < estimate * criterion.under:
            return LoadVerdict("underloaded", number, ratio)
    return LoadVerdict("normal")


def parse_criteria(text: str) -> tuple[LoadCriterion, ...]:
    """Criteria as they are written: `quads`, or `quads:1.5:0.5 reads:4:0` with K1 and K2 of each. The first comes
    first. Raises InputError."""
    return tuple(_parse_criterion(each) for each in text.split())


def _parse_criterion(text: str) -> LoadCriterion:
    name, *bounds = text.split(":")
    try:
        values = [float(each) for each in bounds]
    except ValueError:
        values = [0.0] * 3
    if len(values) not in (0, 2):
        raise InputError(f"{text!r} is no criterion; it is written as quads, or as quads:1.5:0.5 with K1 and K2")
    return LoadCriterion(name, *values)


@dataclass(frozen=True)
class BalanceSettings:
    """Options of rebalancing: which zones are split and merged, and where they are cut. Raises InputError for options
    that contradict each other."""

    strategy: str = "relative"
    """`static`: the most loaded zone is split until there are `zones`. `absolute`: a zone is held against fixed
    `estimates`. `relative`: against the mean, to which zones that are not made yet count as empty."""
    zones: int = ZONES
    """How many there are at most."""
    criteria: tuple[LoadCriterion, ...] = (LoadCriterion(),)
    estimates: tuple[float, ...] = ()
    """The load that is right for a zone, by criterion; of the absolute strategy alone."""
    cut: str = "quantile"
    """`middle` of the bounds, `centroid` of the keys, or `quantile`: where the sample says."""
    dimensions: str = "best"
    """Cut in `turn`, or the `best` one."""
    transformation: str = "none"
    """The order of terms, for a new map: `none`, `prefix`, `reversed`."""
    smallest: int = ZONE_QUADS
    """No zone with fewer quads is split, and none is thought to need fewer."""
    space: KeyInterval = ALL_KEYS
    """The bounds of all keys, for the middle of zones that have none."""

    def __post_init__(self) -> None:
        _check_known("strategy", self.strategy, STRATEGIES)
        _check_known("cut rule", self.cut, RULES)
        _check_known("choice of dimensions", self.dimensions, DIMENSION_CHOICES)
        find_transformation(self.transformation)
        if self.zones < 1:
            raise InputError(f"zones={self.zones}: there must be at least 1")
        names = [each.name for each in self.criteria]
        if not names or len({*names}) < len(names):
            raise InputError(f"criteria {', '.join(names) or '(none)'}: there must be at least one, and each once")
        if self.strategy == "absolute" and (len(self.estimates) != len(names) or min(self.estimates) <= 0):
            raise InputError(
                f"estimates={self.estimates}: the absolute strategy needs one over 0 for each of {', '.join(names)}"
            )
        if self.strategy != "absolute" and self.estimates:
            raise InputError(f"estimates={self.estimates}: the {self.strategy} strategy takes none; absolute does")

    @property
    def merges(self) -> bool:
        """May zones be merged at all?"""
        return self.strategy != "static" and any(each.under > 0 for each in self.criteria)

    @property
    def slack(self) -> float:
        """How far a cut may leave zones off the mean if it saves reading: a quarter of what is normal, because cuts
        follow on cuts. Sampling is not more exact than the least."""
        return max(0.02, min(min(each.over - 1, 1 - each.under) for each in self.criteria) / 4)


def _check_known(what: str, name: str, there: Iterable[str]) -> None:
    if name not in there:
        raise InputError(f"there is no {what} {name!r}; there are {', '.join(there)}")


def estimate_loads(loads: Iterable[ZoneLoad], settings: BalanceSettings) -> tuple[float, ...]:
    """The load that a zone should have, by criterion."""
    return STRATEGIES[settings.strategy](reduce(add, loads, ZoneLoad()), settings)


def _mean(total: ZoneLoad, settings: BalanceSettings) -> tuple[float, ...]:
    means = ((each.name, each.of(total) / settings.zones) for each in settings.criteria)
    return tuple(max(mean, settings.smallest) if name == "quads" else mean for name, mean in means)


STRATEGIES: Mapping[str, Callable[[ZoneLoad, BalanceSettings], tuple[float, ...]]] = {
    "static": lambda total, settings: tuple(each.of(total) / settings.zones for each in settings.criteria),
    "absolute": lambda _, settings: settings.estimates,
    "relative": _mean,
}


def parse_balance(texts: Iterable[str]) -> BalanceSettings:
    """Parse texts such as `zones=64` and `criteria=quads:1.5:0.5,reads:4:0`; others have their defaults. Raises
    InputError that names the wrong option and valid values."""
    return BalanceSettings(**dict(map(_parse_rule, texts)))


def _parse_rule(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or name not in _KINDS:
        raise InputError(f"{text!r} is no rule of balance; say NAME=VALUE with one of {', '.join(_KINDS)}")
    try:
        return name, _KINDS[name](value)
    except ValueError:
        raise InputError(f"{text!r}: {value!r} is not {_WORDS[name]}") from None


_KINDS: Mapping[str, Callable[[str], Any]] = {
    "strategy": str,
    "zones": int,
    "criteria": lambda text: parse_criteria(text.replace(",", " ")),
    "estimates": lambda text: tuple(map(float, text.split(","))),
    "cut": str,
    "dimensions": str,
    "transformation": str,
    "smallest": int,
}
_WORDS = {"zones": "a whole number", "smallest": "a whole number", "estimates": "numbers with commas between them"}
