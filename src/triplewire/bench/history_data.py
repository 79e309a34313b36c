"""The data of `bench history`: a day of a city's sensors, as events for the log and as N-Quads for the rival.

Everything follows from the number of quads. An observation is an event of eight quads: five are about the
observation,
a subject that comes once, and three about its sensor, which comes again all day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from triplewire.bench.sparql_data import BASE, PROPERTIES, SOSA
from triplewire.model import Event, EventHeaders
from triplewire.model.terms import RDF_TYPE, XSD
from triplewire.storage.log.ports import Publication

HOURS = 24
START = datetime(2026, 11, 1, tzinfo=UTC)
QUADS = 8
"""Of an event."""

STREAMS = ("air", "traffic", "weather")
APPLICATION = "city-gateway"
MADE_BY = f"<{SOSA}madeBySensor>"
RESULT_TIME = f"<{SOSA}resultTime>"
RESULT = f"<{SOSA}hasSimpleResult>"

_SENSORS, _FEWEST_SENSORS, _EVENTS_A_SENSOR = 2_000, 20, 100
_SENSORS_A_PLATFORM = 8
_SCATTER = 2_654_435_761
"""Odd and large: multiples of it, taken modulo something, are spread evenly and in no order."""

PREDICATES = (
    RDF_TYPE,
    MADE_BY,
    f"<{SOSA}observedProperty>",
    RESULT,
    RESULT_TIME,
    f"<{SOSA}isHostedBy>",
    f"<{BASE}vocabulary#battery>",
    f"<{BASE}vocabulary#uptime>",
)

_OBSERVATION = f"<{BASE}o/{{n}}>"
_SENSOR = f"<{BASE}sensor/{{sensor}}>"
_OBJECTS = (
    f"<{SOSA}Observation>",
    f"<{BASE}sensor/{{sensor}}>",
    f"<{BASE}property/{{property}}>",
    f'"{{value}}"^^<{XSD}double>',
    f'"{{time}}"^^<{XSD}dateTime>',
    f"<{BASE}platform/{{platform}}>",
    f'"{{battery}}"^^<{XSD}integer>',
    f'"{{uptime}}"^^<{XSD}decimal>',
)
_SUBJECTS = (_OBSERVATION,) * 5 + (_SENSOR,) * 3
_TEXT = "\n".join("\t".join(terms) for terms in zip(_SUBJECTS, PREDICATES, _OBJECTS, strict=True))


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
        return max(_FEWEST_SENSORS, min(_SENSORS, self.events // _EVENTS_A_SENSOR))

    def event(self, number: int) -> Event:
        sensor, millisecond = number * _SCATTER // 3 % self.sensors, self._millisecond(number)
        text = _TEXT.format(
            n=self._name(number),
            sensor=sensor,
            property=PROPERTIES[sensor % len(PROPERTIES)],
            value=_hundredths(number * _SCATTER // 7 % 10_000),
            time=_written(millisecond),
            platform=sensor // _SENSORS_A_PLATFORM,
            battery=100 - (millisecond // 900_000 + sensor) % 90,
            uptime=_hundredths(millisecond // 10 + sensor * 4_321),
        )
        headers = EventHeaders(f"{BASE}gateway/{sensor % 50}", APPLICATION, _MICROSECOND + millisecond * 1_000)
        return Event(f"{BASE}e/{self._name(number)}", text, headers)

    def publications(self, size: int) -> Iterator[Publication]:
        """Everything, in the order of time, at most `size` events in a publication."""
        for first in range(0, self.events, size):
            numbers = range(first, min(self.events, first + size))
            yield Publication(STREAMS[first // size % len(STREAMS)], [self.event(number) for number in numbers])

    def sensor(self, number: int) -> str:
        """A subject that comes again all day, as a term."""
        return f"<{BASE}sensor/{number % self.sensors}>"

    def observation(self, number: int) -> str:
        """A subject that comes in one event, as a term."""
        return f"<{BASE}o/{self._name(number % self.events)}>"

    def _name(self, number: int) -> str:
        """In the order of time, as the ids are that a broker gives."""
        return f"{number:0{len(str(self.events))}}"

    def _millisecond(self, number: int) -> int:
        """Of the day: sensors do not measure in step, but in order."""
        step = HOURS * 3_600_000 / self.events
        return int(number * step + (number * _SCATTER // 11 % 1_000) / 1_000 * step)


_MICROSECOND = int(START.timestamp()) * 1_000_000


def hour(number: int) -> tuple[str, str]:
    """Beginning and end of an hour of the day, as literals."""
    return moment(timedelta(hours=number)), moment(timedelta(hours=number + 1))


def moment(since: timedelta) -> str:
    """So long after the day began, as a literal."""
    return f'"{START + since:%Y-%m-%dT%H:%M:%SZ}"^^<{XSD}dateTime>'


def nquads(publication: Publication) -> bytes:
    """The same quads for the rival."""
    return "".join(map(_lines, publication.events)).encode()


def _lines(event: Event) -> str:
    end = f" <{event.id}> .\n"
    return event.text.replace("\t", " ").replace("\n", end) + end


def _hundredths(number: int) -> str:
    return f"{number // 100}.{number % 100:02}"


def _written(millisecond: int) -> str:
    seconds, rest = divmod(millisecond, 1_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{START:%Y-%m-%d}T{hours:02}:{minute:02}:{second:02}.{rest:03}Z"
