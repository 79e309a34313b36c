"""A day of the city, simulated once for all tests that look at one."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache

from triplewire.model import Event
from triplewire.model.terms import plain
from triplewire.service.city import City, Measure

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
SUNDAY = datetime(2026, 11, 15, tzinfo=UTC)
STEP = timedelta(minutes=10)


def value_of(event: Event) -> float:
    return float(plain(event.quads[3].object))


def measure_of(event: Event) -> Measure:
    return Measure(plain(event.quads[2].object).rpartition("/")[2])


@cache
def day(start: datetime, seed: int = 1) -> tuple[Event, ...]:
    """Every sensor, every ten minutes, from midnight to midnight."""
    city = City(seed, run="test")
    steps = range(timedelta(days=1) // STEP)
    return tuple(event for step in steps for event in city.observe(start + step * STEP, len(city.sensors)))


def by_hour(start: datetime, measure: Measure) -> dict[int, float]:
    """The middle value of a measure in each hour, so that incidents in single districts do not show."""
    values: dict[int, list[float]] = defaultdict(list)
    for event in day(start):
        if measure_of(event) == measure:
            hour = datetime.fromisoformat(plain(event.quads[4].object)).hour
            values[hour].append(value_of(event))
    return {hour: sorted(found)[len(found) // 2] for hour, found in values.items()}
