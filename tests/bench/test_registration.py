"""`bench registration`: what it registers is what it says."""

from __future__ import annotations

from bench.registration import SHAPES, make_bulks, make_filter, write_structure, write_threshold
from triplewire.matching.filters import document_query
from triplewire.matching.shapes import lift
from triplewire.sparql import parse_query


def shapes(queries: list[str]) -> set[str]:
    return {lift(parse_query(each), solutions=False).shape.key for each in queries}


def test_one_shape_is_one() -> None:
    assert len(shapes([write_threshold(number) for number in range(0, 5_000, 37)])) == 1


def test_there_are_as_many_shapes_as_it_says() -> None:
    assert len(shapes([write_structure(number) for number in range(SHAPES + 10)])) == SHAPES


def test_filters_are_of_one_shape() -> None:
    made = {
        lift(document_query({"filter": make_filter(number)}), solutions=False).shape.key
        for number in range(0, 3_000, 41)
    }
    assert len(made) == 1


def test_no_two_are_the_same() -> None:
    for wishes in make_bulks(3_000).values():
        texts = [str(each) for each in wishes]
        assert len(set(texts)) == len(texts) == 3_000
