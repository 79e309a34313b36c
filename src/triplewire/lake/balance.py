"""Balance: how the load of zones is kept even. One value that is checked when it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add

from triplewire.config import limits
from triplewire.errors import InputError
from triplewire.lake.boxes import ALL_KEYS, Interval
from triplewire.lake.criteria import Criterion, Load
from triplewire.lake.cuts import DIMENSION_CHOICES, RULES
from triplewire.lake.transformations import transformation


@dataclass(frozen=True)
class Balance:
    """Which zones are split and merged, and where they are cut. Raises InputError for what makes no sense."""

    strategy: str = "relative"
    """`static`: the most loaded zone is split until there are `zones`. `absolute`: a zone is held against fixed
    `estimates`. `relative`: against the mean, to which zones that are not made yet count as empty."""
    zones: int = limits.ZONES
    """How many there are at most."""
    criteria: tuple[Criterion, ...] = (Criterion(),)
    estimates: tuple[float, ...] = ()
    """The load that is right for a zone, by criterion; of the absolute strategy alone."""
    cut: str = "quantile"
    """`middle` of the bounds, `centroid` of the keys, or `quantile`: where the sample says."""
    dimensions: str = "best"
    """Cut in `turn`, or the `best` one."""
    transformation: str = "none"
    """The order of terms, for a new map: `none`, `prefix`, `reversed`."""
    smallest: int = limits.ZONE_QUADS
    """No zone with fewer quads is split, and none is thought to need fewer."""
    space: Interval = ALL_KEYS
    """The bounds of all keys, for the middle of zones that have none."""

    def __post_init__(self) -> None:
        _known("strategy", self.strategy, STRATEGIES)
        _known("cut rule", self.cut, RULES)
        _known("choice of dimensions", self.dimensions, DIMENSION_CHOICES)
        transformation(self.transformation)
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


def _known(what: str, name: str, there: Iterable[str]) -> None:
    if name not in there:
        raise InputError(f"there is no {what} {name!r}; there are {', '.join(there)}")


def estimates(loads: Iterable[Load], settings: Balance) -> tuple[float, ...]:
    """The load that a zone should have, by criterion."""
    return STRATEGIES[settings.strategy](reduce(add, loads, Load()), settings)


def _mean(total: Load, settings: Balance) -> tuple[float, ...]:
    means = ((each.name, each.of(total) / settings.zones) for each in settings.criteria)
    return tuple(max(mean, settings.smallest) if name == "quads" else mean for name, mean in means)


def _fixed(total: Load, settings: Balance) -> tuple[float, ...]:
    return settings.estimates


STRATEGIES: Mapping[str, Callable[[Load, Balance], tuple[float, ...]]] = {
    "static": lambda total, settings: tuple(each.of(total) / settings.zones for each in settings.criteria),
    "absolute": _fixed,
    "relative": _mean,
}
