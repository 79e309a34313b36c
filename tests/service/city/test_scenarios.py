"""The demo's questions have answers every day, and the answers can be read."""

from __future__ import annotations

from datetime import datetime
from functools import cache

import pyoxigraph as ox
import pytest

from tests.service.city.days import MONDAY, SUNDAY, day
from triplewire import rdf
from triplewire.model import Kind
from triplewire.service.city import SCENARIOS, Scenario


@cache
def store(start: datetime) -> ox.Store:
    """Each event as a named graph, and all their triples once in the default graph."""
    found = ox.Store()
    found.bulk_load(rdf.encode(day(start), rdf.N_TRIPLES), format=ox.RdfFormat.N_TRIPLES)
    found.bulk_load(rdf.encode(day(start), rdf.N_QUADS), format=ox.RdfFormat.N_QUADS)
    return found


def answers(scenario: Scenario, start: datetime) -> list[dict[str, str]]:
    """The scenario's solutions in a day. Every observation is in one event, so that joins do not cross events."""
    found = store(start).query(scenario.sparql)
    if isinstance(found, ox.QueryBoolean):
        return [{}] if found else []
    assert isinstance(found, ox.QuerySolutions)
    names = [variable.value for variable in found.variables]
    return [{name: str(solution[name]) for name in names} for solution in found]


@pytest.mark.parametrize("start", [MONDAY, SUNDAY], ids=["monday", "sunday"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_it_is_hit_within_a_day_but_not_all_the_time(scenario: Scenario, start: datetime) -> None:
    assert 0 < len(answers(scenario, start)) < 0.05 * len(day(start))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_its_answers_can_be_said(scenario: Scenario) -> None:
    said = scenario.say(answers(scenario, MONDAY)[0])
    assert not set(said) & set('{}<>"^')
    assert "http" not in said
    assert "unknown" not in said
    assert "somewhere" not in said


def test_what_it_says() -> None:
    slow = next(scenario for scenario in SCENARIOS if scenario.name == "hospital-road")
    sentence = "Ambulances, avoid road Old mill 1: traffic to the hospital crawls at 9.5 km/h at 17:20"
    terms = {
        "road": "<http://city.example/road/old-mill-1>",
        "speed": '"9.5"^^<http://www.w3.org/2001/XMLSchema#double>',
        "time": '"2026-11-16T17:20:00.000Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
    }
    bare = {"road": "http://city.example/road/old-mill-1", "speed": "9.5", "time": "2026-11-16T17:20:00.000Z"}
    assert slow.say(terms) == slow.say(bare) == sentence
    assert slow.say({}).startswith("Ambulances, avoid road somewhere")


def test_names_are_unique_and_every_kind_is_shown() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert {scenario.kind for scenario in SCENARIOS} == set(Kind)
