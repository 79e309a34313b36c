"""The stream of the workload `sliding`: observations, and where sensors hang, so that a window joins three triples.

Everything follows from the number of an event. In a tick come 45 observations of two triples and 10 statements of one:
2,000 triples a second. Every sensor says twice in a minute where it hangs, and a window is a graph: that counts once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from triplewire.bench.continuous_conjunctions import BASE, Codes
from triplewire.model.terms import XSD

SOSA = "http://www.w3.org/ns/sosa/"
TICKS = 20
"""In a second."""
OBSERVATIONS = 45
STATEMENTS = 10
EVENTS = OBSERVATIONS + STATEMENTS
TRIPLES_PER_S = TICKS * (2 * OBSERVATIONS + STATEMENTS)
SENSORS = 6_000
PLATFORMS = 100
WIDTH = 60
STEP = 1
"""Seconds of a window."""

Number = TypeVar("Number", int, Codes)

_SELECT = "SELECT ?platform (AVG(?value) AS ?mean) (COUNT(?value) AS ?count)"
_JOIN = "?o sosa:madeBySensor ?sensor . ?o sosa:hasSimpleResult ?value . ?sensor sosa:isHostedBy ?platform ."


def query(stream: str) -> str:
    """The question, in RSP-QL."""
    return (
        f"PREFIX sosa: <{SOSA}> REGISTER RSTREAM <means> AS {_SELECT} "
        f"FROM NAMED WINDOW <{BASE}w> ON <{stream}> [RANGE PT{WIDTH}S STEP PT{STEP}S] "
        f"WHERE {{ WINDOW <{BASE}w> {{ {_JOIN} }} }} GROUP BY ?platform"
    )


def rival_query() -> str:
    """The same for engines that read it line by line, with milliseconds."""
    lines = (
        f"PREFIX sosa: <{SOSA}>",
        f"PREFIX b: <{BASE}>",
        f"REGISTER RStream <{BASE}means> AS",
        _SELECT,
        f"FROM NAMED WINDOW b:w ON STREAM b:s [RANGE {WIDTH * 1_000} STEP {STEP * 1_000}]",
        "WHERE {",
        f"WINDOW b:w {{ {_JOIN} }}",
        "} GROUP BY ?platform",
    )
    return "\n".join(lines)


def triples(number: int) -> str:
    """Those of an event, as N-Triples."""
    tick, place = divmod(number, EVENTS)
    if place >= OBSERVATIONS:
        sensor = _announced(tick, place)
        return f"<{BASE}sensor/{sensor}> <{SOSA}isHostedBy> <{BASE}platform/{sensor % PLATFORMS}> ."
    tenths, named = _tenths(number), f"<{BASE}o/{number}>"
    value = f'"{tenths // 10}.{tenths % 10}"^^<{XSD}decimal>'
    return f"{named} <{SOSA}madeBySensor> <{BASE}sensor/{_sensor(number)}> . {named} <{SOSA}hasSimpleResult> {value} ."


def body(numbers: range) -> bytes:
    """Those events as N-Quads."""
    texts = ((triples(number).removesuffix(" .").split(" . "), number) for number in numbers)
    return "".join(f"{each} <{BASE}e/{number}> .\n" for parts, number in texts for each in parts).encode()


def means(numbers: Codes) -> Mapping[int, tuple[int, int]]:
    """What a window that holds these events answers: of each platform how many values, and their sum in tenths."""
    ticks, places = np.divmod(numbers, EVENTS)
    announces = places >= OBSERVATIONS
    hangs = np.zeros(SENSORS, bool)
    hangs[_announced(ticks[announces], places[announces])] = True
    seen = numbers[~announces]
    seen = seen[hangs[_sensor(seen)]]
    platforms = _sensor(seen) % PLATFORMS
    counts = np.bincount(platforms, minlength=PLATFORMS).tolist()
    sums = np.bincount(platforms, _tenths(seen), minlength=PLATFORMS).tolist()
    return {each: (counts[each], round(sums[each])) for each in range(PLATFORMS) if counts[each]}


def _sensor(number: Number) -> Number:
    return number * 7_919 % SENSORS


def _tenths(number: Number) -> Number:
    """A value times ten: 0 to 999."""
    return number * 2_654_435_761 // 7 % 1_000


def _announced(tick: Number, place: Number) -> Number:
    return (tick * STATEMENTS + place - OBSERVATIONS) % SENSORS
