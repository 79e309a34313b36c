"""Cities: sensors that report in turn, as events of five to seven quads."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import count, cycle, islice

from triplewire.model import Event, EventHeaders
from triplewire.model.terms import RDF_TYPE
from triplewire.simulate.curves import typical
from triplewire.simulate.incidents import Incident, incidents
from triplewire.simulate.names import CITY, DATE_TIME, DOUBLE, city, sosa
from triplewire.simulate.sensors import Measure, Sensor, sensors

DISTRICTS = ("centre", "harbour", "north-gate", "university", "old-mill", "hillside")

_JITTER = 0.03
"""Spread of single readings around what they should be."""

_CEILING = {Measure.OCCUPANCY: 95.0}
"""What a measure does not pass by chance alone: full car parks are incidents."""


class City:
    """Sensors of some districts. The same seed, run and calls give the same events; time is given from outside."""

    def __init__(self, seed: int = 1, districts: Sequence[str] = DISTRICTS, run: str | None = None) -> None:
        """`run` stands in every event's id, so that no two runs share ids; left out, it is drawn."""
        self.seed = seed
        self.districts = tuple(districts)
        self.run = run or uuid.uuid4().hex[:12]
        self.sensors = sensors(seed, self.districts)
        self._turns = cycle(self.sensors)
        self._numbers = count(1)
        self._chance = random.Random(f"readings {seed}")

    def incidents(self, at: datetime) -> tuple[Incident, ...]:
        """What is going on at that time, begun that day or the day before."""
        days = (at - timedelta(days=1), at)
        return tuple(i for day in days for i in incidents(self.seed, self.districts, day) if i.lasts(at))

    def observe(self, at: datetime, n: int) -> list[Event]:
        """One reading of each of the next `n` sensors in turn. `at` has a time zone; its hour is the city's hour."""
        going_on = self.incidents(at)
        return [self._event(sensor, at, self._reading(sensor, at, going_on)) for sensor in islice(self._turns, n)]

    def stream(self, start: datetime, every: timedelta) -> Iterator[Event]:
        """Readings without end, one sensor after the other, `every` apart."""
        for step in count():
            yield from self.observe(start + step * every, 1)

    def _reading(self, sensor: Sensor, at: datetime, going_on: Sequence[Incident]) -> float:
        value = typical(sensor.measure, at) * sensor.bias * self._chance.gauss(1.0, _JITTER)
        value = min(value, _CEILING.get(sensor.measure, value))
        for incident in going_on:
            if incident.district == sensor.district:
                value = incident.changed(sensor.measure, value)
        return round(value, 1)

    def _event(self, sensor: Sensor, at: datetime, value: float) -> Event:
        number = next(self._numbers)
        subject = city(f"observation/{self.run}/{number}")
        time = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        lines = [
            f"{subject}\t{RDF_TYPE}\t{sosa('Observation')}",
            f"{subject}\t{sosa('madeBySensor')}\t{sensor.term}",
            f"{subject}\t{sosa('observedProperty')}\t{city(f'property/{sensor.measure}')}",
            f'{subject}\t{sosa("hasSimpleResult")}\t"{value}"^^{DOUBLE}',
            f'{subject}\t{sosa("resultTime")}\t"{time}"^^{DATE_TIME}',
            f"{subject}\t{sosa('hasFeatureOfInterest')}\t{sensor.thing}",
        ]
        text = "\n".join([*lines, sensor.fact] if sensor.fact else lines)
        headers = EventHeaders(source=CITY, application="simulate", time=round(at.timestamp() * 1_000_000))
        return Event(f"{CITY}event/{self.run}/{number}", text, headers)
