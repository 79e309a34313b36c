"""Curves: what a measure typically is at an hour of a day, before anything happens."""

from __future__ import annotations

from datetime import datetime
from math import exp

from triplewire.simulate.sensors import Measure

_MORNING, _EVENING, _AFTERNOON = 8.0, 17.5, 14.0


def load(at: datetime) -> float:
    """How much of the city is on its way, 0 to 1: two rush hours on weekdays, one mild hump at weekends."""
    hour = at.hour + at.minute / 60 + at.second / 3_600
    day = 0.30 * _plateau(hour, 6.5, 21.0)
    if at.weekday() >= 5:
        return 0.05 + 0.7 * day + 0.25 * _hump(hour, _AFTERNOON, 2.5)
    return 0.05 + day + 0.60 * _hump(hour, _MORNING, 1.0) + 0.65 * _hump(hour, _EVENING, 1.3)


def typical(measure: Measure, at: datetime) -> float:
    """The city's mean of a measure at that time."""
    busy = load(at)
    match measure:
        case Measure.SPEED:
            return 52.0 * (1.0 - 0.55 * busy)
        case Measure.NO2:
            return 12.0 + 58.0 * busy
        case Measure.PM25:
            return 5.0 + 16.0 * busy
        case Measure.NOISE:
            return 42.0 + 24.0 * busy
        case Measure.OCCUPANCY:
            return _occupancy(at)


def _occupancy(at: datetime) -> float:
    hour = at.hour + at.minute / 60
    share = 0.5 if at.weekday() >= 5 else 1.0
    return 12.0 + 68.0 * share * _plateau(hour, 9.0, 18.0)


def _hump(hour: float, middle: float, width: float) -> float:
    return exp(-(((hour - middle) / width) ** 2))


def _plateau(hour: float, begin: float, end: float) -> float:
    """0 outside, 1 inside, with slopes of about an hour."""
    return 1.0 / (1.0 + exp(-3.0 * (hour - begin))) / (1.0 + exp(3.0 * (hour - end)))
