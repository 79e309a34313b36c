"""Bodies for benchmarks: events of exactly five quads as ready text, at a few microseconds each."""

from __future__ import annotations

from triplewire.model.terms import RDF_TYPE
from triplewire.simulate.names import CITY, DATE_TIME, DOUBLE, city, sosa

_PROPERTIES = tuple(city(f"property/{name}") for name in ("speed", "no2", "pm25", "occupancy", "noise"))

_TRIPLES = (
    f"{{o}} {RDF_TYPE} {sosa('Observation')}",
    f"{{o}} {sosa('madeBySensor')} <{CITY}sensor/{{sensor}}>",
    f"{{o}} {sosa('observedProperty')} {{property}}",
    f'{{o}} {sosa("hasSimpleResult")} "{{value}}"^^{DOUBLE}',
    f'{{o}} {sosa("resultTime")} "2026-01-{{day:02}}T{{hour:02}}:{{minute:02}}:{{second:02}}Z"^^{DATE_TIME}',
)
_NQUADS = "".join(f"{triple} {{g}} .\n" for triple in _TRIPLES)
_TRIG = "{g} {{\n" + "".join(f"{triple} .\n" for triple in _TRIPLES) + "}}\n"


def bench_events(
    count: int, *, start: int = 0, seed: int = 0, sensors: int = 1_000, run: str = "bench", trig: bool = False
) -> bytes:
    """The events number `start` to `start + count - 1` as an N-Quads or TriG body.

    An event follows from its number, the seed and the number of sensors alone, however bodies are cut. Values lie
    between 0.0 and 99.9; a sensor always measures the same property.
    """
    template = _TRIG if trig else _NQUADS
    return "".join(_event(template, number, seed, sensors, run) for number in range(start, start + count)).encode()


def _event(template: str, number: int, seed: int, sensors: int, run: str) -> str:
    mixed = _mixed(number, seed)
    sensor = mixed % sensors
    return template.format(
        o=f"<{CITY}observation/{run}/{number}>",
        g=f"<{CITY}event/{run}/{number}>",
        sensor=sensor,
        property=_PROPERTIES[sensor % len(_PROPERTIES)],
        value=(mixed >> 20) % 1_000 / 10,
        day=1 + number // 86_400 % 28,
        hour=number // 3_600 % 24,
        minute=number // 60 % 60,
        second=number % 60,
    )


def _mixed(number: int, seed: int) -> int:
    """A number that looks random: the finishing steps of SplitMix64."""
    mixed = (number * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03 + 1) & 0xFFFFFFFFFFFFFFFF
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    return mixed ^ mixed >> 27
