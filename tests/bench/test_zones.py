"""`bench zones`: its tweets are skewed and always the same, and its figures are what they say."""

from __future__ import annotations

from collections import Counter
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.zones import QUADS, deviation, draw, run, write_tweets
from triplewire.rdf import N_QUADS, decode


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return run(600, 16, lambda text: None, batch=100)


def test_tweets_are_always_the_same_and_skewed() -> None:
    events = decode(b"".join(write_tweets(500, 60)), N_QUADS)
    assert b"".join(write_tweets(500, 60)) == b"".join(write_tweets(500, 500))
    assert {len(event.quads) for event in events} == {QUADS}
    creators = Counter(quad.object for event in events for quad in event.quads if "has_creator" in quad.predicate)
    assert creators.most_common(1)[0][1] > 20
    assert len(creators) > 150


def test_deviation_is_that_of_a_sample() -> None:
    assert deviation([5, 5, 5]) == 0
    assert round(deviation([1] + [0] * 31), 1) == 565.7
    assert deviation([0, 0]) == 0


def test_every_quad_lies_in_a_zone_in_every_experiment(report: dict[str, Any]) -> None:
    assert report["quads"] == 600 * QUADS
    for each in report["experiments"].values():
        assert sum(each["loads"]) == report["quads"]
        assert len(each["loads"]) == 16


def test_our_rules_are_more_even_than_those_of_the_thesis(report: dict[str, Any]) -> None:
    found = {name: each["rsd"] for name, each in report["experiments"].items()}
    assert found["static"] <= 5
    assert found["dynamic"] <= 15
    assert found["dynamic"] < min(found[name] for name in ("middle", "centroid", "absolute", "relative"))
    assert found["middle"] == pytest.approx(400, abs=1)


def test_the_picture_has_every_load(report: dict[str, Any]) -> None:
    picture = ElementTree.fromstring(draw(report))
    bars = picture.findall("{http://www.w3.org/2000/svg}rect")
    assert len(bars) == 1 + 16 * len(report["experiments"])
