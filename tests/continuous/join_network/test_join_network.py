"""The network against an engine that we did not write: the same bags of answers, however events are cut into
batches,
in however many stations, by both strategies, and through restarts.
"""

from __future__ import annotations

import hashlib
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.continuous import strategies as some
from tests.continuous.join_network.runs import Run
from tests.continuous.oracle import Asked, Key, Published, expected
from triplewire.continuous.join_network.builder import InputPort, JoinNetwork, StreamScope
from triplewire.continuous.join_network.join_order import build_chain
from triplewire.sparql import Const, Pattern, Var


def told(run: Run, batches: list[list[Published]], restarts: frozenset[int] = frozenset()) -> Counter[Key]:
    found: Counter[Key] = Counter()
    for number, batch in enumerate(batches):
        if number in restarts:
            run.restart()
        found += run.answers(run.take(batch))
        run.expire(batch[-1])
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Asked], list[Published], list[list[Published]], frozenset[int]]:
    events = draw(some.events())
    found = st.one_of(some.queries(), some.answered(events)).flatmap(some.bounded)
    asked = draw(st.lists(found, min_size=1, max_size=4))
    marks = sorted(draw(st.sets(st.integers(1, len(events)))))
    batches = [events[first:last] for first, last in zip([0, *marks], [*marks, len(events)], strict=True)]
    return asked, events, [each for each in batches if each], frozenset(draw(st.sets(st.integers(0, 5), max_size=2)))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(case=cases(), stations=st.sampled_from([1, 2, 5]), spread=st.booleans())
def test_the_network_answers_as_an_engine_of_others_asked_after_every_event(
    case: tuple[list[Asked], list[Published], list[list[Published]], frozenset[int]], stations: int, spread: bool
) -> None:
    asked, events, batches, restarts = case
    run = Run(asked, stations, spread)

    assert told(run, batches, restarts) == expected(asked, events)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(case=cases(), stations=st.sampled_from([2, 5]), data=st.data())
def test_keys_that_become_heavy_are_spread_and_nothing_is_missed_or_told_twice(
    case: tuple[list[Asked], list[Published], list[list[Published]], frozenset[int]], stations: int, data: st.DataObject
) -> None:
    asked, events, batches, _ = case
    run, found = Run(asked, stations), Counter[Key]()
    for batch in batches:
        found += run.answers(run.take(batch))
        keys = sorted({int(key) for place in run.places for key in place.triples.rows["key"]})
        run.weigh(data.draw(st.sets(st.sampled_from(keys))) if keys else set())

    assert found == expected(asked, events)


RESTS = (
    "FILTER(?a != ?b)",
    "FILTER(isIRI(?b))",
    "FILTER(STRLEN(STR(?b)) > 20)",
    "BIND(STRLEN(STR(?b)) AS ?n) FILTER(?n > 1)",
    "BIND(?b + 1 AS ?n)",
    "FILTER(?b = 7 || ?a = <http://example.org/a>)",
)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(events=some.events(), rest=st.sampled_from(RESTS), cut=st.integers(0, 6))
def test_what_is_filtered_and_computed_is_as_the_engine_has_it(events: list[Published], rest: str, cut: int) -> None:
    told_names = ("a", "b", "n") if "?n)" in rest else ("a", "b")
    patterns = (("?a", some.PREDICATES[0], "?m"), ("?m", "?p", "?b"))
    asked = [Asked(patterns, rest=rest, told=told_names), Asked(patterns[:1], rest="FILTER(?a != ?m)", told=("a",))]

    assert told(Run(asked, 2), [each for each in (events[:cut], events[cut:]) if each]) == expected(asked, events)


def test_ids_of_ports_do_not_depend_on_names_of_classes() -> None:
    """Stored rows carry them: another id would leave rows of an older version without their port."""
    port = InputPort("<urn:p>", StreamScope(("a", "b"), 4), joins=1, lifts=4, first=False)
    text = '["port", "<urn:p>", [["a", "b"], 4], 1, 4, false]'
    assert port.id == int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def test_ids_of_nodes_do_not_depend_on_names_of_classes() -> None:
    chain = build_chain([Pattern(Var("a"), Const("<urn:p>"), Var("b"))])
    (node,) = JoinNetwork().leaf(chain, StreamScope()).path
    text = '["node", 0, ["<urn:p>", [3, 0, 3], [0, 0, 1]], [null, 0]]'
    assert node.id == int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
