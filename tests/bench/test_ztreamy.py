"""`bench ztreamy`: its points are the paper's experiments, and each statement stands beside a point of ours."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from triplewire.bench.fanout import measured
from triplewire.bench.ztreamy import PACKED, QUICK, Plan, Point, beside, points
from triplewire.bench.ztreamy_paper import SAID
from triplewire.bench.ztreamy_plot import svg
from triplewire.http.delivery.topics import LISTENERS

FIGURES = ("3a 3c 4a", "3b 3d 4b", "5", "6")


def report(plan: Plan) -> dict[str, Any]:
    """As if each point had been measured."""
    found = [
        {
            "figure": each.figure,
            "series": each.series,
            "clients": each.clients,
            "rate": each.rate,
            "buffer": each.manner.buffer,
            "servers": each.servers,
            "cpu_percent": each.clients / 1_000,
            "p50_ms": 10.0 * number,
        }
        for number, each in enumerate(points(plan))
    ]
    said = [
        {name: getattr(each, name) for name in ("figure", "system", "clients", "rate", "says", "p50_ms", "cpu_percent")}
        for each in SAID
    ]
    return {"points": found, "paper": {"said": said}}


def test_every_figure_has_its_points() -> None:
    found = Counter(each.figure for each in points(Plan()))
    assert tuple(found) == FIGURES
    assert max(each.clients for each in points(Plan())) == 40_000
    assert {each.clients for each in points(Plan()) if each.figure == "6"} == {8_000}
    assert {each.servers for each in points(Plan()) if each.figure == "5"} == {1, 3}


@pytest.mark.parametrize("plan", [Plan(), QUICK, Plan(clients=30)])
def test_no_point_has_more_clients_than_the_plan_or_its_edges_have_room_for(plan: Plan) -> None:
    for each in points(plan):
        assert each.clients <= plan.clients
        assert each.clients <= 0.97 * LISTENERS * each.processes * each.servers


def test_a_statement_stands_beside_a_point_with_at_least_as_many_clients_and_items() -> None:
    pairs = [(said, ours) for said, ours in beside(report(Plan())) if ours is not None]
    assert len(pairs) >= len(SAID) - 1
    for said, ours in pairs:
        assert ours["clients"] >= said["clients"]
        assert ours["rate"] >= said["rate"]
    assert all(ours is None for _, ours in beside(report(Plan(clients=100))))


def test_the_picture_has_every_point_and_what_the_paper_says() -> None:
    whole = report(Plan())
    picture = ElementTree.fromstring(svg(whole))
    circles = picture.findall("{http://www.w3.org/2000/svg}circle")
    crosses = [each for each in picture.findall("{http://www.w3.org/2000/svg}text") if each.text == "×"]
    assert len(circles) == 2 * len(whole["points"])
    assert len(crosses) == 4


@pytest.mark.processes
def test_nothing_is_lost_behind_two_repeaters() -> None:
    point = Point("5", "3 servers", 6, 20, PACKED, servers=3)
    plan = replace(point.fanout(0.5), warm=0.2)
    with point.server() as server:
        found = measured(plan, server, lambda text: None)
    assert len(server.targets) == 3
    assert (found.hearing.clients, found.hearing.lost, found.hearing.unverified) == (6, 0, 0)
