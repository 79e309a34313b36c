"""Sensors: what stands in the city and measures."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from triplewire.model.terms import RDF_TYPE
from triplewire.simulate.names import INTEGER, city


class Measure(StrEnum):
    """What a sensor measures; the value is the name of the property in IRIs."""

    SPEED = "speed"
    """Mean speed of traffic, km/h."""
    NO2 = "no2"
    """Nitrogen dioxide, µg/m³."""
    PM25 = "pm25"
    """Fine dust, µg/m³."""
    OCCUPANCY = "occupancy"
    """Car park spaces that are taken, per cent."""
    NOISE = "noise"
    """Sound level, dB(A)."""


@dataclass(frozen=True)
class _Kind:
    folder: str
    thing: str
    per_district: int


_KINDS = {
    Measure.SPEED: _Kind("traffic", "road", 4),
    Measure.NO2: _Kind("air", "air", 2),
    Measure.PM25: _Kind("dust", "air", 2),
    Measure.OCCUPANCY: _Kind("parking", "carpark", 2),
    Measure.NOISE: _Kind("noise", "place", 2),
}


@dataclass(frozen=True)
class Sensor:
    """One sensor. `bias` is how its place differs from the city's mean; `fact` is a quad that its events add, or ""."""

    measure: Measure
    district: str
    number: int
    bias: float
    fact: str

    @property
    def term(self) -> str:
        return city(f"sensor/{_KINDS[self.measure].folder}/{self.district}-{self.number}")

    @property
    def thing(self) -> str:
        """The road, car park, or place that it observes."""
        return city(f"{_KINDS[self.measure].thing}/{self.district}-{self.number}")


def sensors(seed: int, districts: Sequence[str]) -> tuple[Sensor, ...]:
    """All sensors of a city, mixed, so that any stretch of them shows something of everything."""
    chance = random.Random(f"sensors {seed}")
    found = [sensor for district in districts for sensor in _of_district(district, chance)]
    chance.shuffle(found)
    return tuple(found)


def _of_district(district: str, chance: random.Random) -> Iterator[Sensor]:
    for measure, kind in _KINDS.items():
        for number in range(1, kind.per_district + 1):
            bare = Sensor(measure, district, number, round(chance.uniform(0.92, 1.08), 3), "")
            yield Sensor(measure, district, number, bare.bias, _fact(bare, chance))


def _fact(sensor: Sensor, chance: random.Random) -> str:
    """The first road of each district leads to the hospital; air and noise sensors tell their class."""
    match sensor.measure:
        case Measure.SPEED:
            return f"{sensor.thing}\t{city('leadsTo')}\t{city('place/hospital')}" if sensor.number == 1 else ""
        case Measure.OCCUPANCY:
            return f'{sensor.thing}\t{city("spaces")}\t"{chance.randrange(80, 900, 10)}"^^{INTEGER}'
        case Measure.NOISE:
            return f"{sensor.term}\t{RDF_TYPE}\t{city('NoiseSensor')}"
        case Measure.NO2 | Measure.PM25:
            return f"{sensor.term}\t{RDF_TYPE}\t{city('AirSensor')}"
