"""`bench ztreamy`: its points are the paper's experiments, and each statement stands beside a point of ours."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.fanout import measure_server
from bench.ztreamy import (
    PACKED,
    QUICK,
    STATEMENTS,
    ZtreamyOptions,
    ZtreamyPoint,
    draw,
    make_points,
    pair_statements,
)
from triplewire.http.delivery.topics import LISTENERS

FIGURES = ("3a 3c 4a", "3b 3d 4b", "5", "6")


def report(options: ZtreamyOptions) -> dict[str, Any]:
    """As if each point had been measured."""
    found = [
        {
            "figure": each.figure,
            "series": each.series,
            "clients": each.clients,
            "rate": each.rate,
            "buffer": each.listen.buffer,
            "servers": each.servers,
            "cpu_percent": each.clients / 1_000,
            "p50_ms": 10.0 * number,
        }
        for number, each in enumerate(make_points(options))
    ]
    return {"points": found, "paper": {"said": STATEMENTS}}


def test_every_figure_has_its_points() -> None:
    found = Counter(each.figure for each in make_points(ZtreamyOptions()))
    assert tuple(found) == FIGURES
    assert max(each.clients for each in make_points(ZtreamyOptions())) == 40_000
    assert {each.clients for each in make_points(ZtreamyOptions()) if each.figure == "6"} == {8_000}
    assert {each.servers for each in make_points(ZtreamyOptions()) if each.figure == "5"} == {1, 3}


@pytest.mark.parametrize("options", [ZtreamyOptions(), QUICK, ZtreamyOptions(clients=30)])
def test_no_point_has_more_clients_than_the_plan_or_its_edges_have_room_for(options: ZtreamyOptions) -> None:
    for each in make_points(options):
        assert each.clients <= options.clients
        assert each.clients <= 0.97 * LISTENERS * each.processes * each.servers


def test_a_statement_stands_beside_a_point_with_at_least_as_many_clients_and_items() -> None:
    pairs = [(said, ours) for said, ours in pair_statements(report(ZtreamyOptions())) if ours is not None]
    assert len(pairs) >= len(STATEMENTS) - 1
    for said, ours in pairs:
        assert ours["clients"] >= said["clients"]
        assert ours["rate"] >= said["rate"]
    assert all(ours is None for _, ours in pair_statements(report(ZtreamyOptions(clients=100))))


def test_the_picture_has_every_point_and_what_the_paper_says() -> None:
    whole = report(ZtreamyOptions())
    picture = ElementTree.fromstring(draw(whole))
    circles = picture.findall("{http://www.w3.org/2000/svg}circle")
    crosses = [each for each in picture.findall("{http://www.w3.org/2000/svg}text") if each.text == "×"]
    assert len(circles) == 2 * len(whole["points"])
    assert len(crosses) == 4


@pytest.mark.processes
def test_nothing_is_lost_behind_two_repeaters() -> None:
    point = ZtreamyPoint("5", "3 servers", 6, 20, PACKED, servers=3)
    options = replace(point.make_options(0.5), warm=0.2)
    with point.start() as server:
        found = measure_server(options, server, lambda text: None)
    assert len(server.targets) == 3
    assert (found.received.clients, found.received.lost, found.received.unverified) == (6, 0, 0)
