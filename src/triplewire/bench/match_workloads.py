"""Workloads of `bench match`: subscriptions and events by name. Both follow from their numbers alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from triplewire.bench.match_classes import Classes, ontology
from triplewire.bench.match_mixed import Everything, Mixed, distinct
from triplewire.bench.match_paths import Paths
from triplewire.bench.match_readings import Ranges, Sensors
from triplewire.bench.match_residual import residual
from triplewire.bench.match_templates import Question, Template
from triplewire.model.errors import Unsupported


class Workload(Protocol):
    """Made for a share: how likely an event matches one subscription."""

    @property
    def templates(self) -> Sequence[Template]:
        """Those of all its subscriptions. Each is one object, so that it is lifted once."""

    def question(self, number: int) -> Question:
        """The subscription of that number."""

    def event(self, number: int) -> tuple[str, str]:
        """Of the event of that number its stream, and its five quads as the log holds them."""


@dataclass(frozen=True)
class Sort:
    """How a workload is made: of how many subscriptions and how many matches an event, on average."""

    make: Callable[[int, float], Workload]
    about: str
    matches: Callable[[int], float]
    """How many it has with so many subscriptions, unless told otherwise."""
    usual: int = 100_000
    """Subscriptions, where nobody says how many."""
    ontology: Callable[[], str] | None = None
    """What is loaded before them, as a triple a line."""


def _rated(at: int, matches: float) -> Callable[[int], float]:
    return lambda subscriptions: matches * subscriptions / at


WORKLOADS: Mapping[str, Sort] = {
    "paths": Sort(Paths.of, "paths of five patterns between two constants", _rated(100_000, 0.4)),
    "mixed": Sort(Mixed.of, "100 structures with filters of every kind", _rated(100_000, 2.0)),
    "distinct": Sort(distinct, "as many structures as subscriptions", lambda _: 1.0, usual=1_000),
    "sensors": Sort(Sensors.of, "one of 1,000 sensors, and a threshold", _rated(100_000, 1.0)),
    "ranges": Sort(Ranges.of, "a threshold and no other constant", _rated(100_000, 10.0)),
    "classes": Sort(Classes.of, "sub-classes of a class", _rated(100_000, 2.0), ontology=ontology),
    "everything": Sort(Everything.of, "`mixed`, of which 5 % accept every event", _rated(100_000, 2.0)),
    "residual": Sort(residual, "100 structures that no index decides", _rated(10_000, 1.0), usual=10_000),
}


@dataclass(frozen=True)
class Chosen:
    """A workload of a size."""

    name: str
    subscriptions: int
    matches: float
    workload: Workload = field(repr=False)
    ontology: str | None = field(default=None, repr=False)


def usual(name: str) -> int:
    """How many subscriptions it is about. Raises Unsupported for one that there is not."""
    return _sort(name).usual


def choose(name: str, subscriptions: int, matches: float | None = None) -> Chosen:
    """Raises Unsupported for one that cannot be run."""
    sort = _sort(name)
    wanted = sort.matches(subscriptions) if matches is None else matches
    told = None if sort.ontology is None else sort.ontology()
    return Chosen(name, subscriptions, wanted, sort.make(subscriptions, wanted), told)


def _sort(name: str) -> Sort:
    if name not in WORKLOADS:
        raise Unsupported(f"the workload `{name}`", hint=f"there are {', '.join(WORKLOADS)}")
    return WORKLOADS[name]
