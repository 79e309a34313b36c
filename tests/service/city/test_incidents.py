"""Incidents begin, change what is measured in their district, and end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.service.city.days import MONDAY, value_of
from triplewire.service.city import DISTRICTS, City, Incident, IncidentKind, Measure, draw_incidents

SECOND = timedelta(seconds=1)


def mean(city: City, incident: Incident, measure: Measure, moment: timedelta) -> float:
    at = incident.begins + moment
    events = zip(city.sensors, City(city.seed, city.districts).observe(at, len(city.sensors)), strict=True)
    values = [value_of(e) for s, e in events if s.measure == measure and s.district == incident.district]
    return sum(values) / len(values)


@pytest.mark.parametrize("seed", range(5))
def test_every_kind_happens_every_day_and_ends(seed: int) -> None:
    of_day = draw_incidents(seed, DISTRICTS, MONDAY)
    assert {incident.kind for incident in of_day} == set(IncidentKind)
    assert all(timedelta(0) < incident.ends - incident.begins < timedelta(hours=5) for incident in of_day)
    assert draw_incidents(seed, DISTRICTS, MONDAY + timedelta(hours=13)) == of_day


def test_days_differ() -> None:
    assert (
        draw_incidents(1, DISTRICTS, MONDAY)[0].begins.time()
        != draw_incidents(1, DISTRICTS, MONDAY + timedelta(days=1))[0].begins.time()
    )


@pytest.mark.parametrize(
    ("trouble", "measure", "direction"),
    [
        (IncidentKind.ACCIDENT, Measure.SPEED, -1),
        (IncidentKind.ACCIDENT, Measure.NOISE, 1),
        (IncidentKind.SMOG, Measure.NO2, 1),
        (IncidentKind.SMOG, Measure.PM25, 1),
        (IncidentKind.FULL, Measure.OCCUPANCY, 1),
        (IncidentKind.PARTY, Measure.NOISE, 1),
    ],
)
def test_a_measure_jumps_when_it_begins_and_falls_back_when_it_ends(
    trouble: IncidentKind, measure: Measure, direction: int
) -> None:
    city = City(1)
    incident = next(i for i in draw_incidents(1, DISTRICTS, MONDAY) if i.kind == trouble)
    length = incident.ends - incident.begins
    before, begun, late, after = (
        mean(city, incident, measure, moment) for moment in (-SECOND, SECOND, length - SECOND, length)
    )
    assert direction * begun > direction * before * (1 + 0.1 * direction)
    assert direction * late > direction * after * (1 + 0.1 * direction)


def test_an_incident_goes_on_after_midnight() -> None:
    seed, party = next(
        (seed, incident)
        for seed in range(50)
        for incident in draw_incidents(seed, DISTRICTS, MONDAY)
        if incident.ends.date() > MONDAY.date()
    )
    assert party in City(seed).incidents(party.ends - SECOND)
    assert party not in City(seed).incidents(party.ends)
