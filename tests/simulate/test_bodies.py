"""Benchmark bodies: five quads an event, the same however they are cut."""

from __future__ import annotations

from triplewire.codec import N_QUADS, TRIG, decode
from triplewire.simulate import bench_events


def test_events_have_five_quads_in_both_syntaxes() -> None:
    nquads = decode(bench_events(300, sensors=20), N_QUADS)
    trig = decode(bench_events(300, sensors=20, trig=True), TRIG)
    assert [len(event.quads) for event in nquads] == [5] * 300
    assert [(event.id, event.text) for event in nquads] == [(event.id, event.text) for event in trig]


def test_a_body_may_be_cut_anywhere() -> None:
    assert bench_events(100, start=5) == bench_events(40, start=5) + bench_events(60, start=45)


def test_seed_and_run_make_a_difference() -> None:
    assert bench_events(10) == bench_events(10)
    assert bench_events(10) != bench_events(10, seed=1)
    assert {e.id for e in decode(bench_events(10), N_QUADS)}.isdisjoint(
        e.id for e in decode(bench_events(10, run="other"), N_QUADS)
    )


def test_sensors_and_values_spread() -> None:
    events = decode(bench_events(2_000, sensors=50), N_QUADS)
    assert len({event.quads[1].object for event in events}) == 50
    assert len({event.quads[3].object for event in events}) > 700
    assert len({(event.quads[1].object, event.quads[2].object) for event in events}) == 50
