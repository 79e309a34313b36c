"""The ten queries of `bench sparql`. Each run of one has constants of its own, where it has any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from triplewire.bench.sparql_data import BASE, PART_OF, SOSA, STEP_SECONDS, City, moment, whole
from triplewire.model.terms import XSD

_PREFIXES = f"PREFIX sosa: <{SOSA}> PREFIX xsd: <{XSD}> PREFIX city: <{BASE}> "


@dataclass(frozen=True)
class Question:
    """A query by its short name, what it shows, and its text in a city for a run."""

    name: str
    title: str
    where: Callable[[City, int], str]

    def text(self, city: City, turn: int) -> str:
        return _PREFIXES + self.where(city, turn)

    @property
    def of_graph(self) -> bool:
        """Does it give triples?"""
        return self.name == "construct"


def _lookup(city: City, turn: int) -> str:
    return f"SELECT ?s ?p ?o {{ GRAPH <{BASE}e/{turn * 7_919 % city.events}> {{ ?s ?p ?o }} }}"


def _star(city: City, turn: int) -> str:
    return (
        f"SELECT ?o ?property ?value ?time {{ ?o sosa:madeBySensor <{BASE}sensor/{turn * 13 % city.sensors}> ; "
        f"sosa:observedProperty ?property ; sosa:hasSimpleResult ?value ; sosa:resultTime ?time "
        f"FILTER(?value > {50 + turn}) }}"
    )


def _path(city: City, turn: int) -> str:
    place = whole(city.places + turn % city.platforms)
    return (
        f"SELECT ?o ?sensor ?platform {{ ?o sosa:madeBySensor ?sensor . ?sensor sosa:isHostedBy ?platform . "
        f"?platform <{PART_OF}> <{BASE}place/{place}> }}"
    )


def _numbers(city: City, turn: int) -> str:
    low = 10 + turn
    return f"SELECT ?o ?value {{ ?o sosa:hasSimpleResult ?value FILTER(?value >= {low} && ?value < {low}.1) }}"


def _hour(city: City, turn: int) -> str:
    hours = max(1, city.events * STEP_SECONDS // 3_600)
    start = moment(0) + timedelta(hours=turn * 7 % hours)
    return (
        f"SELECT ?o ?time {{ ?o sosa:resultTime ?time "
        f"FILTER(?time >= {_literal(start)} && ?time < {_literal(start + timedelta(hours=1))}) }}"
    )


def _literal(time: datetime) -> str:
    return f'"{time:%Y-%m-%dT%H:%M:%SZ}"^^xsd:dateTime'


def _regex(city: City, turn: int) -> str:
    return (
        f"SELECT ?o ?sensor {{ ?o sosa:madeBySensor ?sensor "
        f'FILTER(REGEX(STR(?sensor), "/sensor/[0-9]*{turn % 3}7$")) }}'
    )


def _average(city: City, turn: int) -> str:
    return (
        "SELECT ?property (AVG(?value) AS ?mean) (COUNT(*) AS ?count) "
        "{ ?o sosa:observedProperty ?property ; sosa:hasSimpleResult ?value } GROUP BY ?property"
    )


def _closure(city: City, turn: int) -> str:
    return f"SELECT ?sensor {{ ?sensor sosa:isHostedBy ?p . ?p <{PART_OF}>+ <{BASE}place/{turn % 2}> }}"


def _construct(city: City, turn: int) -> str:
    return (
        f"CONSTRUCT {{ ?o city:by ?sensor ; city:value ?value }} "
        f"{{ ?o sosa:madeBySensor ?sensor ; sosa:hasSimpleResult ?value FILTER(?value >= {99 - turn % 5}.5) }}"
    )


def _top(city: City, turn: int) -> str:
    return "SELECT ?o ?value { ?o sosa:hasSimpleResult ?value } ORDER BY DESC(?value) ?o LIMIT 10"


QUESTIONS = (
    Question("lookup", "one event by its id", _lookup),
    Question("star", "one sensor, with a filter", _star),
    Question("path", "a path of 3", _path),
    Question("numbers", "a range of numbers", _numbers),
    Question("hour", "an hour's range", _hour),
    Question("regex", "a regular expression", _regex),
    Question("average", "average per property", _average),
    Question("closure", "property path +", _closure),
    Question("construct", "construct", _construct),
    Question("top", "top 10", _top),
)
