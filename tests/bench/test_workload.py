"""The benchmark's own arithmetic is right: what it expects is what an independent engine finds."""

from __future__ import annotations

from bench.harness import flatten, percentile
from bench.pipeline import SHAPES, find_due, make_subscriptions, write_body
from tests import oracle
from triplewire.matching.shapes import lift
from triplewire.model import Kind
from triplewire.rdf import N_QUADS, decode
from triplewire.sparql import parse_query


def test_events_have_five_quads() -> None:
    assert [len(event.quads) for event in decode(write_body(range(20)), N_QUADS)] == [5] * 20


def test_what_is_expected_is_what_the_oracle_finds() -> None:
    asked = make_subscriptions(2_000)
    numbers = range(4_000, 4_040)
    events = decode(write_body(numbers), N_QUADS)
    sensors = {number * 7_919 % 2_000 for number in numbers}
    near = [index for index, question in enumerate(asked) if question.sensor in sensors]
    found = {
        (index, number)
        for number, event in zip(numbers, events, strict=True)
        for index in near
        if oracle.matches(event, asked[index].sparql)
    }
    assert found == find_due(asked, numbers)
    assert len(found) > 10


def test_every_shape_is_one_of_its_own_and_every_kind_occurs() -> None:
    asked = make_subscriptions(1_000)
    lifted = {
        lift(parse_query(each.sparql), solutions=each.kind is Kind.BINDINGS, stream="x").shape.key for each in asked
    }
    assert len(lifted) == len(SHAPES)
    assert {each.kind for each in asked} == set(Kind)


def test_percentiles() -> None:
    assert percentile([], 0.5) == 0.0
    assert percentile([5.0, 1.0, 3.0, 2.0, 4.0], 0.5) == 2.0
    assert percentile(list(map(float, range(1, 101))), 0.99) == 99.0


def test_a_report_is_laid_flat() -> None:
    assert flatten({"a": 1, "b": {"c": {"d": 2}, "e": 3}}) == [("a", 1), ("b.c.d", 2), ("b.e", 3)]
