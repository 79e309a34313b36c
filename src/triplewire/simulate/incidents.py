"""Incidents: what makes a day in the city unlike the others. Each begins and ends."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from triplewire.simulate.names import spoken
from triplewire.simulate.sensors import Measure


class Trouble(StrEnum):
    ACCIDENT = "accident"
    SMOG = "smog"
    FULL = "full car parks"
    PARTY = "loud party"


_EFFECTS: Mapping[tuple[Trouble, Measure], tuple[float, float]] = {
    (Trouble.ACCIDENT, Measure.SPEED): (0.25, 0.0),
    (Trouble.ACCIDENT, Measure.NOISE): (1.0, 11.0),
    (Trouble.SMOG, Measure.NO2): (1.1, 190.0),
    (Trouble.SMOG, Measure.PM25): (1.2, 60.0),
    (Trouble.FULL, Measure.OCCUPANCY): (0.0, 100.0),
    (Trouble.PARTY, Measure.NOISE): (1.0, 34.0),
}
"""Factor and summand for a measure while the trouble lasts."""


@dataclass(frozen=True)
class Incident:
    """A trouble in one district, from `begins` until just before `ends`."""

    trouble: Trouble
    district: str
    begins: datetime
    ends: datetime

    def lasts(self, at: datetime) -> bool:
        return self.begins <= at < self.ends

    def changed(self, measure: Measure, value: float) -> float:
        """The value as it is because of the incident."""
        factor, summand = _EFFECTS.get((self.trouble, measure), (1.0, 0.0))
        return value * factor + summand

    def __str__(self) -> str:
        return f"{spoken(self.trouble)} in {spoken(self.district)} until {self.ends:%H:%M}"


def incidents(seed: int, districts: Sequence[str], at: datetime) -> tuple[Incident, ...]:
    """Those of the day of `at`. The same seed and day give the same ones; the first district is the busy centre."""
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    chance = random.Random(f"incidents {seed} {midnight:%Y-%m-%d}")
    return tuple(_of_day(districts, midnight, chance))


def _of_day(districts: Sequence[str], midnight: datetime, chance: random.Random) -> Iterator[Incident]:
    def one(trouble: Trouble, district: str, between: tuple[float, float], minutes: tuple[int, int]) -> Incident:
        begins = midnight + timedelta(minutes=round(60 * chance.uniform(*between)))
        return Incident(trouble, district, begins, begins + timedelta(minutes=chance.randint(*minutes)))

    for district in chance.sample(districts, min(3, len(districts))):
        yield one(Trouble.ACCIDENT, district, (7.0, 20.0), (30, 70))
    for district in chance.sample(districts, min(2, len(districts))):
        yield one(Trouble.SMOG, district, (7.0, 8.0), (150, 240))
    for district in {districts[0]: None, chance.choice(districts): None}:
        yield one(Trouble.FULL, district, (10.0, 16.0), (60, 150))
    yield one(Trouble.PARTY, chance.choice(districts), (22.0, 22.7), (60, 180))
