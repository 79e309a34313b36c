"""How long a query takes to become SQL, in this process: when its structure is new, and when it is not."""

from __future__ import annotations

import time
from statistics import median

from triplewire.bench.sparql_data import PART_OF, PROPERTIES, SOSA, City
from triplewire.bench.sparql_queries import QUESTIONS, Question
from triplewire.model.terms import RDF_TYPE, iri
from triplewire.sparql import compile_query, parse_query
from triplewire.sparql.algebra import Family
from triplewire.sparql.statistics import PredicateKind, Statistics, TripleCounts

TURNS = 9


def compile_ms(city: City) -> dict[str, dict[str, float]]:
    """By query, `first` and `again`, with other constants."""
    known = statistics(city)
    _seconds("ASK {}", known)
    return {each.name: _times(each, city, known) for each in QUESTIONS}


def statistics(city: City) -> Statistics:
    """What a query's process counts in the lake, so that plans are those that are made there."""
    events, places = city.events, city.platforms + city.places - 1
    values = {"madeBySensor": city.sensors, "observedProperty": len(PROPERTIES), "hasSimpleResult": 10_000}
    counts = {
        RDF_TYPE: TripleCounts(events, events, events, 1),
        **{iri(SOSA + name): TripleCounts(events, events, events, number) for name, number in values.items()},
        iri(f"{SOSA}resultTime"): TripleCounts(events, events, events, events),
        iri(f"{SOSA}isHostedBy"): TripleCounts(city.sensors, city.sensors, city.sensors, city.platforms),
        iri(PART_OF): TripleCounts(places, places, places, city.places),
    }
    families = {
        iri(f"{SOSA}hasSimpleResult"): Family.DOUBLE,
        iri(f"{SOSA}resultTime"): Family.DATETIME,
    }
    kinds = {
        each: PredicateKind(frozenset({families.get(each, Family.IRI)}), short=True, unique=True) for each in counts
    }
    total = TripleCounts(city.quads, city.quads, events + city.sensors + places, events + city.sensors)
    numbers = {predicate: number for number, predicate in enumerate(counts)}
    return Statistics(counts, total, kinds, numbers, complete=True, blank=False)


def _times(question: Question, city: City, known: Statistics) -> dict[str, float]:
    first, *again = (_seconds(question.text(city, turn), known) * 1_000 for turn in range(1 + TURNS))
    return {"first": round(first, 2), "again": round(median(again), 2)}


def _seconds(text: str, known: Statistics) -> float:
    began = time.perf_counter()
    compile_query(parse_query(text), "duckdb", known)
    return time.perf_counter() - began
