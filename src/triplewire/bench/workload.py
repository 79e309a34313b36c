"""The workload of the pipeline benchmark: sensor events of five quads, and subscriptions whose answers are known.

Everything follows from an event's number, so what must be delivered is computed here by plain arithmetic, apart from
the code that is measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from triplewire.model import Kind

SOSA = "http://www.w3.org/ns/sosa/"
BASE = "http://city.example/"
PROPERTIES = ("no2", "noise", "speed", "occupancy")
SENSORS = 2_000

_LINES = "".join(
    f"<{BASE}o/{{n}}> {predicate} {obj} <{BASE}e/{{n}}> .\n"
    for predicate, obj in (
        ("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", f"<{SOSA}Observation>"),
        (f"<{SOSA}madeBySensor>", f"<{BASE}district/{{district}}/sensor/{{sensor}}>"),
        (f"<{SOSA}observedProperty>", f"<{BASE}property/{{property}}>"),
        (f"<{SOSA}hasSimpleResult>", '"{value}"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
        (
            f"<{SOSA}resultTime>",
            '"2026-11-15T{hour:02}:{minute:02}:{second:02}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
        ),
    )
)


@dataclass(frozen=True)
class Reading:
    """What event number `number` says."""

    number: int

    @property
    def sensor(self) -> int:
        return self.number * 7_919 % SENSORS

    @property
    def tenths(self) -> int:
        """The value times ten: 0 to 999."""
        return self.number * 2_654_435_761 // 7 % 1_000

    def nquads(self) -> str:
        n, sensor, tenths = self.number, self.sensor, self.tenths
        return _LINES.format(
            n=n,
            sensor=sensor,
            district=sensor % 20,
            property=PROPERTIES[sensor % len(PROPERTIES)],
            value=f"{tenths // 10}.{tenths % 10}",
            hour=n // 3_600 % 24,
            minute=n // 60 % 60,
            second=n % 60,
        )


def body(numbers: Iterable[int]) -> bytes:
    """The N-Quads of those events, in order."""
    return "".join(Reading(number).nquads() for number in numbers).encode()


@dataclass(frozen=True)
class Question:
    """A subscription, the one sensor that it is about, and the readings of that sensor that it must be told."""

    sparql: str
    kind: Kind
    sensor: int
    wants: Callable[[Reading], bool]


def questions(count: int) -> list[Question]:
    """That many, of ten shapes in equal parts. Each sensor's readings are asked for by about `count / SENSORS`."""
    return [SHAPES[number % len(SHAPES)](number * 13 % SENSORS, number * 37 % 1_000) for number in range(count)]


def expected(asked: list[Question], numbers: Iterable[int]) -> set[tuple[int, int]]:
    """The pairs (number of the question, number of the event) that must be delivered, once each."""
    by_sensor: defaultdict[int, list[int]] = defaultdict(list)
    for index, question in enumerate(asked):
        by_sensor[question.sensor].append(index)
    found: set[tuple[int, int]] = set()
    for number in numbers:
        reading = Reading(number)
        found.update((index, number) for index in by_sensor[reading.sensor] if asked[index].wants(reading))
    return found


def _iri(sensor: int) -> str:
    return f"<{BASE}district/{sensor % 20}/sensor/{sensor}>"


def _always(reading: Reading) -> bool:
    return True


def _sensor(sensor: int, tenths: int) -> Question:
    return Question(_select(f"?o sosa:madeBySensor {_iri(sensor)}"), Kind.SIGNAL, sensor, _always)


def _whole(sensor: int, tenths: int) -> Question:
    return Question(_select(f"?o a sosa:Observation ; sosa:madeBySensor {_iri(sensor)}"), Kind.EVENT, sensor, _always)


def _above(sensor: int, tenths: int) -> Question:
    where = f"?o sosa:madeBySensor {_iri(sensor)} ; sosa:hasSimpleResult ?v FILTER(?v > {tenths / 10})"
    return Question(_select(where), Kind.BINDINGS, sensor, lambda reading: reading.tenths > tenths)


def _at_most(sensor: int, tenths: int) -> Question:
    where = f"?o sosa:madeBySensor {_iri(sensor)} ; sosa:hasSimpleResult ?v FILTER(?v <= {tenths / 10})"
    return Question(_select(where), Kind.SIGNAL, sensor, lambda reading: reading.tenths <= tenths)


def _between(sensor: int, tenths: int) -> Question:
    where = (
        f"?o sosa:hasSimpleResult ?v ; sosa:madeBySensor {_iri(sensor)} "
        f"FILTER(?v >= {tenths / 20} && ?v < {tenths / 10})"
    )
    return Question(
        _select(where), Kind.BINDINGS, sensor, lambda reading: tenths / 20 <= reading.tenths / 10 < tenths / 10
    )


def _scaled(sensor: int, tenths: int) -> Question:
    where = f"?o sosa:madeBySensor {_iri(sensor)} ; sosa:hasSimpleResult ?v FILTER(?v * 2 > {tenths / 10} + 1)"
    return Question(_select(where), Kind.BINDINGS, sensor, lambda reading: reading.tenths * 2 > tenths + 10)


def _graph(sensor: int, tenths: int) -> Question:
    where = f"GRAPH ?g {{ ?o sosa:madeBySensor {_iri(sensor)} ; sosa:hasSimpleResult ?v }}"
    return Question(_select(where), Kind.BINDINGS, sensor, _always)


def _property(sensor: int, tenths: int) -> Question:
    of = f"<{BASE}property/{PROPERTIES[sensor % len(PROPERTIES)]}>"
    where = f"?o sosa:observedProperty {of} ; sosa:madeBySensor {_iri(sensor)} ; sosa:resultTime ?t"
    return Question(_select(where), Kind.BINDINGS, sensor, _always)


def _other_property(sensor: int, tenths: int) -> Question:
    """Never true: the sensor measures something else."""
    of = f"<{BASE}property/{PROPERTIES[(sensor + 1) % len(PROPERTIES)]}>"
    where = f"?o sosa:madeBySensor {_iri(sensor)} ; sosa:observedProperty {of}"
    return Question(_select(where), Kind.EVENT, sensor, lambda reading: False)


def _named(sensor: int, tenths: int) -> Question:
    of = f"<{BASE}property/{PROPERTIES[sensor % len(PROPERTIES)]}>"
    where = f'?o sosa:observedProperty {of} ; sosa:madeBySensor ?s FILTER(STRENDS(STR(?s), "/sensor/{sensor}"))'
    return Question(_select(where), Kind.SIGNAL, sensor, _always)


def _select(where: str) -> str:
    return f"PREFIX sosa: <{SOSA}> SELECT * {{ {where} }}"


SHAPES: tuple[Callable[[int, int], Question], ...] = (
    _sensor,
    _whole,
    _above,
    _at_most,
    _between,
    _scaled,
    _graph,
    _property,
    _other_property,
    _named,
)
