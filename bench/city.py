"""Data of `bench sparql`, `bench history` and `bench hour`: sensors of a city, and their observations.

All of it follows from the number of quads. In `City` an observation is an event of five quads, and one more event
places the sensors. In `Day` it is an event of eight: five about the observation, whose subject occurs once, and three
about its sensor, which recurs all day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bench.harness import SOSA
from triplewire.model import Event, EventHeaders
from triplewire.model.terms import RDF_TYPE, XSD
from triplewire.storage.log.ports import Publication

PART_OF = "http://purl.org/dc/terms/isPartOf"
BASE = "http://city.example/"
PROPERTIES = ("no2", "noise", "speed", "occupancy", "temperature")
START = datetime(2026, 11, 1, tzinfo=UTC)
STEP_SECONDS = 10
"""Between two observations of a `City`: an hour has 360 of them."""
FAN_OUT = 4
"""Parts of a place: places, or platforms."""

HOURS = 24
QUADS = 8
"""Quads of an event of a `Day`."""
STREAMS = ("air", "traffic", "weather")
MADE_BY, RESULT_TIME, RESULT = f"<{SOSA}madeBySensor>", f"<{SOSA}resultTime>", f"<{SOSA}hasSimpleResult>"

_CITY_EVENT = "".join(
    f"<{BASE}o/{{n}}> {predicate} {obj} <{BASE}e/{{n}}> .\n"
    for predicate, obj in (
        (RDF_TYPE, f"<{SOSA}Observation>"),
        (MADE_BY, f"<{BASE}sensor/{{sensor}}>"),
        (f"<{SOSA}observedProperty>", f"<{BASE}property/{{property}}>"),
        (RESULT, f'"{{value}}"^^<{XSD}double>'),
        (RESULT_TIME, f'"{{time:%Y-%m-%dT%H:%M:%SZ}}"^^<{XSD}dateTime>'),
    )
)
_DAY_OBJECTS = {
    RDF_TYPE: f"<{SOSA}Observation>",
    MADE_BY: f"<{BASE}sensor/{{sensor}}>",
    f"<{SOSA}observedProperty>": f"<{BASE}property/{{property}}>",
    RESULT: f'"{{value}}"^^<{XSD}double>',
    RESULT_TIME: f'"{{time}}"^^<{XSD}dateTime>',
    f"<{SOSA}isHostedBy>": f"<{BASE}platform/{{platform}}>",
    f"<{BASE}vocabulary#battery>": f'"{{battery}}"^^<{XSD}integer>',
    f"<{BASE}vocabulary#uptime>": f'"{{uptime}}"^^<{XSD}decimal>',
}
PREDICATES = tuple(_DAY_OBJECTS)
_DAY_EVENT = "\n".join(
    f"<{BASE}{'o/{n}' if at < 5 else 'sensor/{sensor}'}>\t{predicate}\t{obj}"
    for at, (predicate, obj) in enumerate(_DAY_OBJECTS.items())
)
_SCATTER = 2_654_435_761
"""Odd and large: multiples of it, taken modulo something, are spread evenly and in no order."""


@dataclass(frozen=True)
class City:
    """About that many quads, as whole events."""

    wanted: int

    @property
    def sensors(self) -> int:
        return max(32, min(2_048, self.wanted // 500))

    @property
    def platforms(self) -> int:
        return self.sensors // 8

    @property
    def places(self) -> int:
        """Place 0 is the city. There are as many as a whole tree needs whose leaves are the platforms."""
        return max(FAN_OUT, self.platforms // (FAN_OUT - 1) + 1)

    @property
    def events(self) -> int:
        """Observations."""
        return max(1, (self.wanted - self._hierarchy_quads) // 5)

    @property
    def quads(self) -> int:
        return self.events * 5 + self._hierarchy_quads

    @property
    def _hierarchy_quads(self) -> int:
        return self.sensors + self.platforms + self.places - 1

    def write_observation(self, number: int) -> str:
        sensor = number * 7_919 % self.sensors
        return _CITY_EVENT.format(
            n=number,
            sensor=sensor,
            property=PROPERTIES[sensor % len(PROPERTIES)],
            value=_write_hundredths(number * _SCATTER // 7 % 10_000),
            time=START + timedelta(seconds=number * STEP_SECONDS),
        )

    def write_hierarchy(self) -> str:
        """Return where sensors hang, as the N-Quads of one event."""
        lines = [(f"sensor/{n}", f"{SOSA}isHostedBy", f"platform/{n % self.platforms}") for n in range(self.sensors)]
        lines += [(f"platform/{n}", PART_OF, f"place/{place_of(self.places + n)}") for n in range(self.platforms)]
        lines += [(f"place/{n}", PART_OF, f"place/{place_of(n)}") for n in range(1, self.places)]
        return "".join(f"<{BASE}{s}> <{p}> <{BASE}{o}> <{BASE}e/places> .\n" for s, p, o in lines)

    def write_bodies(self, size: int) -> Iterator[bytes]:
        """Yield all of it as N-Quads, at most `size` events in a body."""
        yield self.write_hierarchy().encode()
        for first in range(0, self.events, size):
            numbers = range(first, min(self.events, first + size))
            yield "".join(map(self.write_observation, numbers)).encode()


def place_of(number: int) -> int:
    """Return the place that a place is a part of; platforms are counted on from the last place."""
    return (number - 1) // FAN_OUT


@dataclass(frozen=True)
class Day:
    """About that many quads, as whole events, spread evenly over a day."""

    wanted: int

    @property
    def events(self) -> int:
        return max(1, self.wanted // QUADS)

    @property
    def quads(self) -> int:
        return self.events * QUADS

    @property
    def sensors(self) -> int:
        return max(20, min(2_000, self.events // 100))

    def make_event(self, number: int) -> Event:
        sensor, millisecond = number * _SCATTER // 3 % self.sensors, self._millisecond_of(number)
        minutes, rest = divmod(millisecond, 60_000)
        text = _DAY_EVENT.format(
            n=self._name_of(number),
            sensor=sensor,
            property=PROPERTIES[sensor % len(PROPERTIES)],
            value=_write_hundredths(number * _SCATTER // 7 % 10_000),
            time=f"{START:%Y-%m-%d}T{minutes // 60:02}:{minutes % 60:02}:{rest // 1_000:02}.{rest % 1_000:03}Z",
            platform=sensor // 8,
            battery=100 - (millisecond // 900_000 + sensor) % 90,
            uptime=_write_hundredths(millisecond // 10 + sensor * 4_321),
        )
        at = int(START.timestamp()) * 1_000_000 + millisecond * 1_000
        return Event(
            f"{BASE}e/{self._name_of(number)}", text, EventHeaders(f"{BASE}gateway/{sensor % 50}", "city-gateway", at)
        )

    def make_publications(self, size: int) -> Iterator[Publication]:
        """Yield all events in the order of time, at most `size` in a publication."""
        for first in range(0, self.events, size):
            numbers = range(first, min(self.events, first + size))
            yield Publication(STREAMS[first // size % len(STREAMS)], [self.make_event(number) for number in numbers])

    def sensor(self, number: int) -> str:
        """A subject that comes again all day, as a term."""
        return f"<{BASE}sensor/{number % self.sensors}>"

    def observation(self, number: int) -> str:
        """A subject that comes in one event, as a term."""
        return f"<{BASE}o/{self._name_of(number % self.events)}>"

    def _name_of(self, number: int) -> str:
        """Return a name in the order of time, as the ids are that a broker gives."""
        return f"{number:0{len(str(self.events))}}"

    def _millisecond_of(self, number: int) -> int:
        """Sensors do not measure in step, but in order."""
        step = HOURS * 3_600_000 / self.events
        return int(number * step + (number * _SCATTER // 11 % 1_000) / 1_000 * step)


def write_time(since: timedelta) -> str:
    """Return the literal of so long after the day began."""
    return f'"{START + since:%Y-%m-%dT%H:%M:%SZ}"^^<{XSD}dateTime>'


def write_nquads(publication: Publication) -> bytes:
    """Return the quads of a publication for an engine of others."""
    ends = ((each.text, f" <{each.id}> .\n") for each in publication.events)
    return "".join(text.replace("\t", " ").replace("\n", end) + end for text, end in ends).encode()


def _write_hundredths(number: int) -> str:
    return f"{number // 100}.{number % 100:02}"
