"""The workloads `sensors` and `ranges`: readings with a value, and thresholds that most of them do not reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triplewire.bench.match_draws import below, draw, exponential
from triplewire.bench.match_templates import Question, Template
from triplewire.model.terms import RDF_TYPE, XSD

BASE = "http://bench.example/"
SENSORS = 1_000
SELDOM = 10
"""Of so many thresholds a value passes one at most, in the mean."""

_SENSORS, _READINGS, _VALUES = 21, 22, 23
_GOLDEN = 0.6180339887498949
_TYPES = ("double", "decimal")

_OF_SENSOR = Template(f"SELECT * {{ ?o <{BASE}sensor> $i0 ; <{BASE}value> ?v FILTER(?v > $n1) }}")
_OF_ANY = Template(f"SELECT * {{ ?o <{BASE}value> ?v FILTER(?v > $n0) }}")


@dataclass(frozen=True)
class Sensors:
    """Thresholds lie evenly below `top`; values are 1 in the mean, so one in `top` thresholds of a sensor is passed.

    There are fewer sensors where few subscriptions have many matches, so that thresholds are still seldom passed.
    """

    sensors: int
    top: float

    @classmethod
    def of(cls, subscriptions: int, matches: float) -> Sensors:
        sensors = max(1, min(SENSORS, round(subscriptions / matches / SELDOM)))
        return cls(sensors, subscriptions / sensors / matches)

    @property
    def templates(self) -> Sequence[Template]:
        return (_OF_SENSOR,)

    def question(self, number: int) -> Question:
        sensor, _ = below(draw(_SENSORS, number), self.sensors)
        return Question(_OF_SENSOR, (f"<{BASE}sensor/{sensor}>", _threshold(number, self.top)))

    def event(self, number: int) -> tuple[str, str]:
        return "bench", _reading(number, self.sensors)


@dataclass(frozen=True)
class Ranges:
    """The same of all sensors at once."""

    top: float

    @classmethod
    def of(cls, subscriptions: int, matches: float) -> Ranges:
        return cls(subscriptions / matches)

    @property
    def templates(self) -> Sequence[Template]:
        return (_OF_ANY,)

    def question(self, number: int) -> Question:
        return Question(_OF_ANY, (_threshold(number, self.top),))

    def event(self, number: int) -> tuple[str, str]:
        return "bench", _reading(number, SENSORS)


def _threshold(number: int, top: float) -> str:
    """As evenly spread as can be, however many there are: few of them decide how many matches there are."""
    return f'"{(number + 0.5) * _GOLDEN % 1 * top:.6f}"^^<{XSD}decimal>'


def _reading(number: int, sensors: int) -> str:
    sensor, left = below(draw(_READINGS, number), sensors)
    kind, left = below(left, len(_TYPES))
    second, _ = below(left, 86_400)
    value = exponential(draw(_VALUES, number))
    this = f"<{BASE}o/{number}>"
    return (
        f"{this}\t{RDF_TYPE}\t<{BASE}Reading>\n"
        f"{this}\t<{BASE}sensor>\t<{BASE}sensor/{sensor}>\n"
        f'{this}\t<{BASE}value>\t"{value:.6f}"^^<{XSD}{_TYPES[kind]}>\n'
        f"{this}\t<{BASE}unit>\t<{BASE}unit/{sensor % 7}>\n"
        f'{this}\t<{BASE}at>\t"2026-11-16T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"'
        f"^^<{XSD}dateTime>"
    )
