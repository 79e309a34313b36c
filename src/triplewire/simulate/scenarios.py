"""Scenarios: the questions that the demo asks the city, and how their answers are said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triplewire.model import Kind
from triplewire.model.terms import plain
from triplewire.simulate.names import CITY, SOSA, spoken

_PREFIXES = f"PREFIX sosa: <{SOSA}>\nPREFIX city: <{CITY}>\nPREFIX property: <{CITY}property/>\n"


class _Words(dict[str, str]):
    """The words of a sentence; what is not known is said so."""

    def __missing__(self, key: str) -> str:
        return "somewhere" if key in ("road", "sensor", "park") else "unknown"


@dataclass(frozen=True)
class Scenario:
    """A subscription that tells something, with the sentence that tells it to people."""

    name: str
    title: str
    sparql: str
    kind: Kind
    sentence: str

    def say(self, bindings: Mapping[str, str]) -> str:
        """The sentence for one solution; values may be terms, or bare addresses and lexical forms. May be empty."""
        return self.sentence.format_map(_Words({name: _word(value) for name, value in bindings.items()}))


def _word(value: str) -> str:
    bare = plain(value) if value.startswith(("<", '"')) else value
    if bare.startswith(CITY):
        return spoken(bare)
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
