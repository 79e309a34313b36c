"""The demo's city: a deterministic simulation of sensors, days and incidents, and the subscriptions of the demo with
the sentences for their notifications.

The same seed, run and calls give the same events.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import count, cycle, islice
from math import exp

from triplewire.model import Event, EventHeaders, Kind
from triplewire.model.terms import RDF_TYPE, XSD, plain

SOSA = "http://www.w3.org/ns/sosa/"
CITY = "http://city.example/"

DOUBLE = f"<{XSD}double>"
DATE_TIME = f"<{XSD}dateTime>"
INTEGER = f"<{XSD}integer>"


def city_term(path: str) -> str:
    return f"<{CITY}{path}>"


def sosa_term(name: str) -> str:
    return f"<{SOSA}{name}>"


def display_name(address: str) -> str:
    """Return a name for people: `http://city.example/road/harbour-3` is `Harbour 3`."""
    return address.rstrip("/").rpartition("/")[2].replace("-", " ").capitalize()


class Measure(StrEnum):
    """A property that sensors measure; the value is its name in IRIs."""

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
    """A sensor. `bias` is the factor of its readings over the city's mean; `fact` is a quad that its events add, or
    ""."""

    measure: Measure
    district: str
    number: int
    bias: float
    fact: str

    @property
    def term(self) -> str:
        return city_term(f"sensor/{_KINDS[self.measure].folder}/{self.district}-{self.number}")

    @property
    def thing(self) -> str:
        """The road, car park, or place that it observes."""
        return city_term(f"{_KINDS[self.measure].thing}/{self.district}-{self.number}")


def make_sensors(seed: int, districts: Sequence[str]) -> tuple[Sensor, ...]:
    """Return all sensors of a city in random order, so that any run of them has every kind."""
    chance = random.Random(f"sensors {seed}")
    found = [sensor for district in districts for sensor in _make_district(district, chance)]
    chance.shuffle(found)
    return tuple(found)


def _make_district(district: str, chance: random.Random) -> Iterator[Sensor]:
    for measure, kind in _KINDS.items():
        for number in range(1, kind.per_district + 1):
            bare = Sensor(measure, district, number, round(chance.uniform(0.92, 1.08), 3), "")
            yield Sensor(measure, district, number, bare.bias, _fact(bare, chance))


def _fact(sensor: Sensor, chance: random.Random) -> str:
    """Return the extra quad of a sensor: the first road of a district leads to the hospital, air and noise sensors have
    a class."""
    match sensor.measure:
        case Measure.SPEED:
            return (
                f"{sensor.thing}\t{city_term('leadsTo')}\t{city_term('place/hospital')}" if sensor.number == 1 else ""
            )
        case Measure.OCCUPANCY:
            return f'{sensor.thing}\t{city_term("spaces")}\t"{chance.randrange(80, 900, 10)}"^^{INTEGER}'
        case Measure.NOISE:
            return f"{sensor.term}\t{RDF_TYPE}\t{city_term('NoiseSensor')}"
        case Measure.NO2 | Measure.PM25:
            return f"{sensor.term}\t{RDF_TYPE}\t{city_term('AirSensor')}"


_MORNING, _EVENING, _AFTERNOON = 8.0, 17.5, 14.0
_BY_TRAFFIC = {
    Measure.SPEED: (52.0, -28.6),
    Measure.NO2: (12.0, 58.0),
    Measure.PM25: (5.0, 16.0),
    Measure.NOISE: (42.0, 24.0),
}
"""Means of measures without traffic, and their change with full traffic."""


def traffic_load(at: datetime) -> float:
    """Return the traffic from 0 to 1: two rush hours on weekdays, one mild hump at weekends."""
    hour = at.hour + at.minute / 60 + at.second / 3_600
    day = 0.30 * _plateau(hour, 6.5, 21.0)
    if at.weekday() >= 5:
        return 0.05 + 0.7 * day + 0.25 * _hump(hour, _AFTERNOON, 2.5)
    return 0.05 + day + 0.60 * _hump(hour, _MORNING, 1.0) + 0.65 * _hump(hour, _EVENING, 1.3)


def typical_value(measure: Measure, at: datetime) -> float:
    """Return the city's mean of a measure at that time."""
    if measure is Measure.OCCUPANCY:
        share = 0.5 if at.weekday() >= 5 else 1.0
        return 12.0 + 68.0 * share * _plateau(at.hour + at.minute / 60, 9.0, 18.0)
    least, growth = _BY_TRAFFIC[measure]
    return least + growth * traffic_load(at)


def _hump(hour: float, middle: float, width: float) -> float:
    return exp(-(((hour - middle) / width) ** 2))


def _plateau(hour: float, begin: float, end: float) -> float:
    """0 outside, 1 inside, with slopes of about an hour."""
    return 1.0 / (1.0 + exp(-3.0 * (hour - begin))) / (1.0 + exp(3.0 * (hour - end)))


class IncidentKind(StrEnum):
    ACCIDENT = "accident"
    SMOG = "smog"
    FULL = "full car parks"
    PARTY = "loud party"


_EFFECTS: Mapping[tuple[IncidentKind, Measure], tuple[float, float]] = {
    (IncidentKind.ACCIDENT, Measure.SPEED): (0.25, 0.0),
    (IncidentKind.ACCIDENT, Measure.NOISE): (1.0, 11.0),
    (IncidentKind.SMOG, Measure.NO2): (1.1, 190.0),
    (IncidentKind.SMOG, Measure.PM25): (1.2, 60.0),
    (IncidentKind.FULL, Measure.OCCUPANCY): (0.0, 100.0),
    (IncidentKind.PARTY, Measure.NOISE): (1.0, 34.0),
}
"""Factor and summand for a measure during an incident."""


@dataclass(frozen=True)
class Incident:
    """An incident in one district, from `begins` until just before `ends`."""

    kind: IncidentKind
    district: str
    begins: datetime
    ends: datetime

    def lasts(self, at: datetime) -> bool:
        return self.begins <= at < self.ends

    def apply(self, measure: Measure, value: float) -> float:
        """Return the value during the incident."""
        factor, summand = _EFFECTS.get((self.kind, measure), (1.0, 0.0))
        return value * factor + summand

    def __str__(self) -> str:
        return f"{display_name(self.kind)} in {display_name(self.district)} until {self.ends:%H:%M}"


def draw_incidents(seed: int, districts: Sequence[str], at: datetime) -> tuple[Incident, ...]:
    """Return the incidents of the day of `at`: the same for the same seed and day. The first district is the centre."""
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    chance = random.Random(f"incidents {seed} {midnight:%Y-%m-%d}")
    return tuple(_draw_day(districts, midnight, chance))


def _draw_day(districts: Sequence[str], midnight: datetime, chance: random.Random) -> Iterator[Incident]:
    def draw(kind: IncidentKind, district: str, between: tuple[float, float], minutes: tuple[int, int]) -> Incident:
        begins = midnight + timedelta(minutes=round(60 * chance.uniform(*between)))
        return Incident(kind, district, begins, begins + timedelta(minutes=chance.randint(*minutes)))

    for district in chance.sample(districts, min(3, len(districts))):
        yield draw(IncidentKind.ACCIDENT, district, (7.0, 20.0), (30, 70))
    for district in chance.sample(districts, min(2, len(districts))):
        yield draw(IncidentKind.SMOG, district, (7.0, 8.0), (150, 240))
    for district in {districts[0]: None, chance.choice(districts): None}:
        yield draw(IncidentKind.FULL, district, (10.0, 16.0), (60, 150))
    yield draw(IncidentKind.PARTY, chance.choice(districts), (22.0, 22.7), (60, 180))


DISTRICTS = ("centre", "harbour", "north-gate", "university", "old-mill", "hillside")

_JITTER = 0.03
"""Spread of single readings around what they should be."""

_CEILING = {Measure.OCCUPANCY: 95.0}
"""The most that a measure reaches without an incident."""


class City:
    """Sensors of some districts. The same seed, run and calls give the same events; time is given from outside."""

    def __init__(self, seed: int = 1, districts: Sequence[str] = DISTRICTS, run: str | None = None) -> None:
        """`run` is part of every event's id, so that no two runs share ids; by default it is random."""
        self.seed = seed
        self.districts = tuple(districts)
        self.run = run or uuid.uuid4().hex[:12]
        self.sensors = make_sensors(seed, self.districts)
        self._turns = cycle(self.sensors)
        self._numbers = count(1)
        self._chance = random.Random(f"readings {seed}")

    def incidents(self, at: datetime) -> tuple[Incident, ...]:
        """Return the incidents at that time, which began that day or the day before."""
        days = (at - timedelta(days=1), at)
        return tuple(i for day in days for i in draw_incidents(self.seed, self.districts, day) if i.lasts(at))

    def observe(self, at: datetime, n: int) -> list[Event]:
        """Return a reading of each of the next `n` sensors. `at` has a time zone; its hour is the city's hour."""
        incidents = self.incidents(at)
        return [self._event(sensor, at, self._reading(sensor, at, incidents)) for sensor in islice(self._turns, n)]

    def stream(self, start: datetime, every: timedelta) -> Iterator[Event]:
        """Yield readings without end, one sensor after the other, `every` apart."""
        for step in count():
            yield from self.observe(start + step * every, 1)

    def _reading(self, sensor: Sensor, at: datetime, incidents: Sequence[Incident]) -> float:
        value = typical_value(sensor.measure, at) * sensor.bias * self._chance.gauss(1.0, _JITTER)
        value = min(value, _CEILING.get(sensor.measure, value))
        for incident in incidents:
            if incident.district == sensor.district:
                value = incident.apply(sensor.measure, value)
        return round(value, 1)

    def _event(self, sensor: Sensor, at: datetime, value: float) -> Event:
        number = next(self._numbers)
        subject = city_term(f"observation/{self.run}/{number}")
        time = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        lines = [
            f"{subject}\t{RDF_TYPE}\t{sosa_term('Observation')}",
            f"{subject}\t{sosa_term('madeBySensor')}\t{sensor.term}",
            f"{subject}\t{sosa_term('observedProperty')}\t{city_term(f'property/{sensor.measure}')}",
            f'{subject}\t{sosa_term("hasSimpleResult")}\t"{value}"^^{DOUBLE}',
            f'{subject}\t{sosa_term("resultTime")}\t"{time}"^^{DATE_TIME}',
            f"{subject}\t{sosa_term('hasFeatureOfInterest')}\t{sensor.thing}",
        ]
        text = "\n".join([*lines, sensor.fact] if sensor.fact else lines)
        headers = EventHeaders(source=CITY, application="simulate", time=round(at.timestamp() * 1_000_000))
        return Event(f"{CITY}event/{self.run}/{number}", text, headers)


_PREFIXES = f"PREFIX sosa: <{SOSA}>\nPREFIX city: <{CITY}>\nPREFIX property: <{CITY}property/>\n"


class _Words(dict[str, str]):
    """The words of a sentence, with a substitute for unknown ones."""

    def __missing__(self, key: str) -> str:
        return "somewhere" if key in ("road", "sensor", "park") else "unknown"


@dataclass(frozen=True)
class Scenario:
    """A subscription of the demo, with a sentence for its notifications."""

    name: str
    title: str
    sparql: str
    kind: Kind
    sentence: str

    def say(self, bindings: Mapping[str, str]) -> str:
        """Return the sentence for a solution, whose values are terms, or bare IRIs and lexical forms; may be empty."""
        return self.sentence.format_map(_Words({name: _word(value) for name, value in bindings.items()}))


def _word(value: str) -> str:
    bare = plain(value) if value.startswith(("<", '"')) else value
    if bare.startswith(CITY):
        return display_name(bare)
    return bare[11:16] if bare[10:11] == "T" else bare


SCENARIOS = (
    Scenario(
        name="bad-air",
        title="A threshold: nitrogen dioxide over the hourly limit",
        sparql=_PREFIXES
        + """SELECT ?sensor ?level WHERE {
  ?o sosa:observedProperty property:no2 ;
     sosa:madeBySensor ?sensor ;
     sosa:hasSimpleResult ?level .
  FILTER (?level > 200)
}""",
        kind=Kind.BINDINGS,
        sentence="Bad air at {sensor}: {level} µg/m³ of nitrogen dioxide, the limit is 200",
    ),
    Scenario(
        name="hospital-road",
        title="A join inside an event: slow traffic on a road that leads to the hospital",
        sparql=_PREFIXES
        + """SELECT ?road ?speed ?time WHERE {
  GRAPH ?event {
    ?o sosa:observedProperty property:speed ;
       sosa:hasFeatureOfInterest ?road ;
       sosa:hasSimpleResult ?speed ;
       sosa:resultTime ?time .
    ?road city:leadsTo <http://city.example/place/hospital> .
    FILTER (?speed < 15)
  }
}""",
        kind=Kind.BINDINGS,
        sentence="Ambulances, avoid road {road}: traffic to the hospital crawls at {speed} km/h at {time}",
    ),
    Scenario(
        name="loud-night",
        title="A whole class of sensors: any noise sensor, at night, above 70 dB",
        sparql=_PREFIXES
        + """SELECT ?sensor ?level ?time WHERE {
  ?sensor a city:NoiseSensor .
  ?o sosa:madeBySensor ?sensor ;
     sosa:hasSimpleResult ?level ;
     sosa:resultTime ?time .
  FILTER (?level > 70 && REGEX(STR(?time), "T(22|23|00|01|02|03|04|05):"))
}""",
        kind=Kind.BINDINGS,
        sentence="Someone cannot sleep at {sensor}: {level} dB at {time}",
    ),
    Scenario(
        name="centre-full",
        title="A place by its name: a car park of the centre is full",
        sparql=_PREFIXES
        + """ASK {
  ?o sosa:observedProperty property:occupancy ;
     sosa:hasFeatureOfInterest ?park ;
     sosa:hasSimpleResult ?taken .
  FILTER (?taken >= 99 && STRSTARTS(STR(?park), "http://city.example/carpark/centre-"))
}""",
        kind=Kind.SIGNAL,
        sentence="A car park in the centre is full: take the tram",
    ),
    Scenario(
        name="fine-dust",
        title="The whole event: fine dust at any air sensor above 60 µg/m³",
        sparql=_PREFIXES
        + """SELECT ?o WHERE {
  ?sensor a city:AirSensor .
  ?o sosa:madeBySensor ?sensor ;
     sosa:observedProperty property:pm25 ;
     sosa:hasSimpleResult ?level .
  FILTER (?level > 60)
}""",
        kind=Kind.EVENT,
        sentence="Fine dust is high: the whole observation goes to the health office",
    ),
)
