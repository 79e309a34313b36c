"""The city is the same every time, and its days look like days."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice, pairwise

from tests.service.city.days import MONDAY, STEP, SUNDAY, by_hour, day
from triplewire import rdf
from triplewire.model.terms import plain
from triplewire.service.city import City, Measure


def test_the_same_seed_and_run_give_the_same_events() -> None:
    one, other = (City(7, run="r").observe(MONDAY, 200) for _ in range(2))
    assert one == other


def test_another_seed_gives_other_events() -> None:
    assert City(7, run="r").observe(MONDAY, 200) != City(8, run="r").observe(MONDAY, 200)


def test_ids_differ_inside_a_run_and_between_runs() -> None:
    cities = City(7), City(7)
    ids = [event.id for city in cities for event in (*city.observe(MONDAY, 100), *city.observe(MONDAY, 100))]
    assert len(set(ids)) == 400


def test_every_event_comes_through_the_codec_unchanged() -> None:
    events = day(MONDAY)[:2_000]
    decoded = rdf.decode(rdf.encode(events, rdf.TRIG), rdf.TRIG)
    assert [(event.id, event.text) for event in decoded] == [(event.id, event.text) for event in events]


def test_events_have_five_to_seven_quads_and_say_when() -> None:
    for event in City(3).observe(MONDAY, 500):
        assert 5 <= len(event.quads) <= 7
        assert plain(event.quads[4].object) == "2026-11-16T00:00:00.000Z"
        assert event.headers.time == MONDAY.timestamp() * 1_000_000


def test_every_sensor_has_its_turn() -> None:
    city = City(3)
    seen = {event.quads[1].object for event in city.observe(MONDAY, len(city.sensors))}
    assert seen == {sensor.term for sensor in city.sensors}


def test_a_stream_moves_in_time() -> None:
    events = list(islice(City(3).stream(MONDAY, timedelta(seconds=1)), 10))
    times = [event.headers.time for event in events]
    assert all(b == a + 1_000_000 for a, b in pairwise(filter(None, times)))


def test_traffic_is_slowest_in_the_rush_hours() -> None:
    speed = by_hour(MONDAY, Measure.SPEED)
    slowest = sorted(speed, key=speed.__getitem__)[:4]
    assert set(slowest) <= {7, 8, 16, 17, 18}
    assert min(speed[8], speed[17]) < 0.8 * speed[12]
    assert speed[3] > 1.5 * speed[17]


def test_air_and_noise_follow_the_traffic() -> None:
    for measure in (Measure.NO2, Measure.NOISE):
        level = by_hour(MONDAY, measure)
        assert level[17] > level[12] > level[3]


def test_car_parks_fill_by_day() -> None:
    taken = by_hour(MONDAY, Measure.OCCUPANCY)
    assert taken[13] > 70
    assert taken[3] < 20


def test_weekends_are_quieter() -> None:
    for measure in (Measure.NO2, Measure.OCCUPANCY):
        assert by_hour(SUNDAY, measure)[17] < 0.7 * by_hour(MONDAY, measure)[17]


def test_the_city_knows_what_is_going_on() -> None:
    city = City(1)
    going_on = [incident for step in range(144) for incident in city.incidents(MONDAY + step * STEP)]
    assert {incident.district for incident in going_on} <= set(city.districts)
    assert any("until" in str(incident) for incident in going_on)
