"""The data of `bench sparql`: a city's sensors, where they hang, and what they measured.

Everything follows from the number of quads. An observation is an event of five quads; where sensors hang is one event
more, published once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from triplewire.model.terms import RDF_TYPE, XSD

SOSA = "http://www.w3.org/ns/sosa/"
PART_OF = "http://purl.org/dc/terms/isPartOf"
BASE = "http://city.example/"
PROPERTIES = ("no2", "noise", "speed", "occupancy", "temperature")
START = datetime(2026, 11, 1, tzinfo=UTC)
STEP_SECONDS = 10
"""Between two observations: an hour has 360 of them."""
FAN_OUT = 4
"""Parts of a place: places, or platforms."""

_QUADS = 5
_FEWEST_SENSORS, _MOST_SENSORS, _QUADS_A_SENSOR = 32, 2_048, 500
_SENSORS_A_PLATFORM = 8

_EVENT = "".join(
    f"<{BASE}o/{{n}}> {predicate} {obj} <{BASE}e/{{n}}> .\n"
    for predicate, obj in (
        (RDF_TYPE, f"<{SOSA}Observation>"),
        (f"<{SOSA}madeBySensor>", f"<{BASE}sensor/{{sensor}}>"),
        (f"<{SOSA}observedProperty>", f"<{BASE}property/{{property}}>"),
        (f"<{SOSA}hasSimpleResult>", f'"{{value}}"^^<{XSD}double>'),
        (f"<{SOSA}resultTime>", f'"{{time:%Y-%m-%dT%H:%M:%SZ}}"^^<{XSD}dateTime>'),
    )
)


@dataclass(frozen=True)
class City:
    """About that many quads: whole events."""

    wanted: int

    @property
    def sensors(self) -> int:
        return max(_FEWEST_SENSORS, min(_MOST_SENSORS, self.wanted // _QUADS_A_SENSOR))

    @property
    def platforms(self) -> int:
        return self.sensors // _SENSORS_A_PLATFORM

    @property
    def places(self) -> int:
        """Place 0 is the city. As many as a whole tree needs whose leaves are the platforms."""
        return max(FAN_OUT, self.platforms // (FAN_OUT - 1) + 1)

    @property
    def events(self) -> int:
        """Observations."""
        return max(1, (self.wanted - self._hierarchy_quads) // _QUADS)

    @property
    def quads(self) -> int:
        return self.events * _QUADS + self._hierarchy_quads

    @property
    def _hierarchy_quads(self) -> int:
        return self.sensors + self.platforms + self.places - 1

    def observation(self, number: int) -> str:
        """The event as N-Quads."""
        sensor = number * 7_919 % self.sensors
        return _EVENT.format(
            n=number,
            sensor=sensor,
            property=PROPERTIES[sensor % len(PROPERTIES)],
            value=_value(number),
            time=moment(number),
        )

    def hierarchy(self) -> str:
        """Where sensors hang, as the N-Quads of one event."""
        hosted = (
            (f"sensor/{number}", f"{SOSA}isHostedBy", f"platform/{number % self.platforms}")
            for number in range(self.sensors)
        )
        placed = ((f"platform/{n}", PART_OF, f"place/{whole(self.places + n)}") for n in range(self.platforms))
        within = ((f"place/{n}", PART_OF, f"place/{whole(n)}") for n in range(1, self.places))
        lines = (f"<{BASE}{s}> <{p}> <{BASE}{o}> <{BASE}e/places> .\n" for s, p, o in (*hosted, *placed, *within))
        return "".join(lines)

    def bodies(self, size: int) -> Iterator[bytes]:
        """Everything as N-Quads, at most `size` events in a body."""
        yield self.hierarchy().encode()
        for first in range(0, self.events, size):
            numbers = range(first, min(self.events, first + size))
            yield "".join(map(self.observation, numbers)).encode()


def whole(number: int) -> int:
    """The place that place number `number` is a part of; platforms are counted on from the last place."""
    return (number - 1) // FAN_OUT


def moment(number: int) -> datetime:
    """When observation number `number` was made."""
    return START + timedelta(seconds=number * STEP_SECONDS)


def _value(number: int) -> str:
    """0.00 to 99.99, spread evenly and in no order."""
    hundredths = number * 2_654_435_761 // 7 % 10_000
    return f"{hundredths // 100}.{hundredths % 100:02}"
