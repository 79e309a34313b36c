"""Streams that queries read and publish into: circles are found, however long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.http.resources.dataflow import QUERY_STREAMS, DataflowGraph, QueryFlow
from triplewire.model.errors import InvalidField
from triplewire.storage.memory import MemoryRegistry, PositionSequence
from triplewire.storage.registry.subscriptions import queries_publishing_to


def currents(*there: QueryFlow, published: str = "") -> DataflowGraph:
    registry = MemoryRegistry(PositionSequence())
    for each in there:
        registry.put([(queries_publishing_to(each.into or ""), each.id, {"reads": each.reads})])
    return DataflowGraph(registry, lambda stream: stream in published.split())


@pytest.mark.parametrize(
    ("there", "reads", "way"),
    [
        ([], ("a",), "a → this query → a"),
        ([], None, "a → this query → a"),
        ([QueryFlow("1", ("a",), "b")], ("b",), "a → query 1 → b → this query → a"),
        ([QueryFlow("1", None, "b")], ("x", "b"), "a → query 1 → b → this query → a"),
        (
            [QueryFlow("1", ("a",), "b"), QueryFlow("2", ("y", "b"), "c"), QueryFlow("3", ("c",), "c2")],
            ("c2",),
            "a → query 1 → b → query 2 → c → query 3 → c2 → this query → a",
        ),
    ],
)
def test_a_circle_is_named(there: list[QueryFlow], reads: tuple[str, ...] | None, way: str) -> None:
    with pytest.raises(InvalidField) as raised:
        currents(*there).check(QueryFlow("new", reads, "a"))
    assert raised.value.field == "into"
    assert way in str(raised.value)


def test_circles_of_others_are_passed_once() -> None:
    """There are none, but a search must come to its end whatever it is given."""
    round_ = [QueryFlow("1", ("b",), "c"), QueryFlow("2", ("c",), "b")]
    currents(*round_).check(QueryFlow("new", ("b",), "a"))


def test_those_that_are_about_to_be_there_count() -> None:
    found = currents()
    drafts = [QueryFlow("1", ("a",), "b")]
    with pytest.raises(InvalidField):
        found.check(QueryFlow("new", ("b",), "a"), drafts)
    assert found.find_unknown(QueryFlow("new", ("b", "x")), drafts) == "x"


def test_a_chain_of_any_length_is_followed() -> None:
    there = [QueryFlow(str(n), (f"s{n}",), f"s{n + 1}") for n in range(3_000)]
    with pytest.raises(InvalidField):
        currents(*there).check(QueryFlow("new", ("s3000",), "s0"))
    currents(*there).check(QueryFlow("new", ("s3000",), "other"))


def test_there_is_an_end_to_what_is_looked_at() -> None:
    there = [QueryFlow(str(n), (f"s{n}",), f"s{n + 1}") for n in range(QUERY_STREAMS + 1)]
    with pytest.raises(InvalidField, match="through other queries"):
        currents(*there).check(QueryFlow("new", (there[-1].into or "",), "other"))


def test_a_stream_is_known_by_what_is_published_to_it() -> None:
    found = currents(QueryFlow("1", ("a",), "b"), QueryFlow("me", ("a",), "c"), published="a")
    assert found.find_unknown(QueryFlow("me", ("a", "b"))) is None
    assert found.find_unknown(QueryFlow("me", ("a", "c"))) == "c"
    assert found.find_unknown(QueryFlow("me", None)) is None


@given(st.lists(st.tuples(st.sets(st.integers(0, 4), min_size=1), st.integers(0, 4)), max_size=6))
@settings(max_examples=200, deadline=None)
def test_what_is_let_in_never_makes_a_circle(asked: list[tuple[set[int], int]]) -> None:
    there: list[QueryFlow] = []
    for number, (reads, into) in enumerate(asked):
        current = QueryFlow(str(number), tuple(str(each) for each in sorted(reads)), str(into))
        refused = False
        try:
            currents(*there).check(current)
        except InvalidField:
            refused = True
        assert refused == is_round([*there, current])
        there += [] if refused else [current]


def is_round(there: list[QueryFlow]) -> bool:
    """By going on from each stream for as many steps as there are streams."""
    return any(start in reached(start, there) for start in {each.into or "" for each in there})


def reached(start: str, there: list[QueryFlow]) -> set[str]:
    found: set[str] = set()
    for _ in range(len(there) + 1):
        found |= set(steps({start} | found, there))
    return found


def steps(streams: set[str], there: list[QueryFlow]) -> Iterator[str]:
    for each in there:
        if each.into is not None and (each.reads is None or streams & set(each.reads)):
            yield each.into
