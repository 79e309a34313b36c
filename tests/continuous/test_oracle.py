"""The oracle of continuous queries is held to a second one, by brute force, and both to examples that were worked
out
by hand.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.continuous import brute, paper
from tests.continuous.oracle import Asked, Key, Published, Triple, expected, normal, orders
from tests.continuous.strategies import EX, LITERALS, NODES, PREDICATES, answered, bounded, events, quads, worlds

A, B, C = NODES
KNOWS, IN, SAYS = PREDICATES
CASES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "cases" / "paper.toml").read_text())["case"]
STRATEGIES: dict[str, Callable[[], paper.Strategy]] = {"cqc": paper.Cqc, "csbv": paper.Csbv}


def triple(text: str) -> Triple:
    subject, predicate, target = text.split(" ")
    return subject, predicate, target


def full(pattern: Triple) -> Triple:
    """A triple of the paper with terms as N-Triples writes them."""
    subject, predicate, target = (part if part.startswith("?") else f"<{EX}{part}>" for part in pattern)
    return subject, predicate, target


def once(*quads: Triple) -> list[Published]:
    return [Published(position, (quad,)) for position, quad in enumerate(quads, start=1)]


def test_an_answer_is_told_when_its_last_piece_arrives() -> None:
    asked = Asked((("?x", KNOWS, "?y"), ("?y", IN, C)))
    found = expected([asked], once((B, IN, C), (A, SAYS, A), (A, KNOWS, B)))
    assert found == {(0, 3, (("x", A), ("y", B))): 1}


def test_what_is_published_twice_counts_twice() -> None:
    asked = Asked((("?x", KNOWS, "?y"), ("?y", IN, C)), told=("x",))
    found = expected([asked], once((B, IN, C), (A, KNOWS, B), (A, KNOWS, B), (B, IN, C)))
    assert found == {(0, 2, (("x", A),)): 1, (0, 3, (("x", A),)): 1, (0, 4, (("x", A),)): 2}


def test_set_semantics_tell_an_answer_once() -> None:
    asked = Asked((("?x", KNOWS, "?y"),), told=("x",), distinct=True)
    assert expected([asked], once((A, KNOWS, B), (A, KNOWS, C))) == {(0, 1, (("x", A),)): 1}


def test_pieces_of_one_event_make_one_answer_at_its_position() -> None:
    asked = Asked((("?x", KNOWS, "?y"), ("?y", IN, "?z")))
    found = expected([asked], [Published(7, ((A, KNOWS, B), (B, IN, C), (B, IN, A)))])
    assert found == {(0, 7, (("x", A), ("y", B), ("z", C))): 1, (0, 7, (("x", A), ("y", B), ("z", A))): 1}


def test_what_was_published_before_a_query_does_not_count() -> None:
    asked = Asked((("?x", KNOWS, "?y"), ("?y", IN, C)), since=1)
    assert not expected([asked], once((B, IN, C), (A, KNOWS, B)))
    assert expected([replace(asked, since=0)], once((B, IN, C), (A, KNOWS, B)))


def test_pieces_that_lie_too_far_apart_make_no_answer() -> None:
    asked = Asked((("?x", KNOWS, "?y"), ("?y", IN, C)))
    far = [Published(1, ((B, IN, C),), 0), Published(4, ((A, KNOWS, B),), 10)]
    assert expected([replace(asked, span=4)], far).total() == 1
    assert expected([replace(asked, span=3)], far).total() == 0
    assert expected([replace(asked, within=11)], far).total() == 1
    assert expected([replace(asked, within=10)], far).total() == 0


def test_conditions_and_new_values_are_the_oracles() -> None:
    seven = LITERALS[2]
    asked = Asked((("?x", SAYS, "?n"),), rest="FILTER(?n > 5) BIND(?n + 1 AS ?m)", told=("m",))
    found = expected([asked], once((A, SAYS, seven), (B, SAYS, '"3"^^<http://www.w3.org/2001/XMLSchema#integer>')))
    assert found == {(0, 1, (("m", '"8"^^<http://www.w3.org/2001/XMLSchema#integer>'),)): 1}


@pytest.mark.parametrize("term", [*NODES, *PREDICATES, *LITERALS])
def test_terms_are_written_as_the_oracle_writes_them(term: str) -> None:
    assert normal(term) == term


@settings(max_examples=150, deadline=None)
@given(worlds(patterns=3), st.data())
def test_both_oracles_agree(world: tuple[list[Asked], list[Published]], data: st.DataObject) -> None:
    asked, published = world
    limited = [data.draw(bounded(each, distinct=True)) for each in asked]
    assert expected(limited, published) == brute.expected(limited, published)


@settings(max_examples=30, deadline=None)
@given(events(most=4, quads_each=2).flatmap(lambda each: st.tuples(answered(each, connected=True), st.just(each))))
def test_both_oracles_agree_on_four_patterns(world: tuple[Asked, list[Published]]) -> None:
    asked, published = world
    assert expected([asked], published) == brute.expected([asked], published)


@settings(max_examples=30, deadline=None)
@given(st.lists(quads, min_size=1, max_size=4), st.data())
def test_all_orders_of_arrival_give_one_bag(pieces: list[Triple], data: st.DataObject) -> None:
    asked = data.draw(answered(once(*pieces), 3))
    bags = [by_answer(expected([asked], order)) for order in orders(pieces)]
    assert bags[0]
    assert all(bag == bags[0] for bag in bags)


def test_worlds_hold_what_makes_queries_hard() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=200, deadline=None, database=None)
    @given(worlds(most=1))
    def look(world: tuple[list[Asked], list[Published]]) -> None:
        (asked,), published = world
        found = expected([asked], published)
        if not found:
            return
        seen["answered"] += 1
        seen["more than once"] += any(count > 1 for count in found.values())
        seen["joined"] += len(asked.patterns) > 1
        seen["of four patterns"] += len(asked.patterns) == 4
        seen["a predicate"] += any(pattern[1].startswith("?") for pattern in asked.patterns)
        seen["twice in a pattern"] += any(len(set(pattern)) < 3 for pattern in asked.patterns)
        seen["without a variable"] += not asked.variables
        seen["at several positions"] += len({position for _, position, _ in found}) > 1

    look()
    assert seen["answered"] > 100
    assert all(count >= 5 for count in seen.values()), seen
    assert len(seen) == 8


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_examples_of_the_paper_are_answered_so(case: dict[str, Any]) -> None:
    asked = Asked(tuple(full(triple(text)) for text in case["query"]))
    found = expected([asked], once(*(full(triple(text)) for text in case["triples"])))
    wanted: Counter[Key] = Counter()
    for position, told in enumerate(case["answers"], start=1):
        for text in told:
            wanted[0, position, bindings(text)] += 1
    assert found == wanted


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_algorithms_of_the_paper_send_what_the_examples_say(case: dict[str, Any], strategy: str) -> None:
    asked = [triple(text) for text in case["query"]]
    steps = paper.answers(STRATEGIES[strategy](), [asked], [triple(text) for text in case["triples"]])
    assert [sorted(step.sent) for step in steps] == [sorted(each) for each in case[strategy]]
    found = [sorted(" ".join(f"{name}={told[name]}" for name in sorted(told)) for _, told in s.answers) for s in steps]
    assert found == [sorted(each) for each in case["answers"]]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_algorithms_of_the_paper_answer_as_the_oracle_does(strategy: str) -> None:
    random = Random(9)
    asked = [[(f"?{depth}", f"p{depth}", f"?{depth + 1}") for depth in range(length)] for length in (1, 2, 3)]
    triples = [(f"n{random.randrange(4)}", f"p{random.randrange(3)}", f"n{random.randrange(4)}") for _ in range(30)]
    found = [Counter(number for number, _ in s.answers) for s in paper.answers(STRATEGIES[strategy](), asked, triples)]
    right = expected([Asked(tuple(full(each) for each in patterns)) for patterns in asked], once(*map(full, triples)))
    counted: Counter[tuple[int, int]] = Counter()
    for (number, position, _), count in right.items():
        counted[number, position] += count
    assert {(n, at): count for at, each in enumerate(found, start=1) for n, count in each.items()} == counted


def test_values_spread_work_over_more_addresses_than_patterns_do() -> None:
    random = Random(9)
    asked = [[("?a", "p0", "?b"), ("?b", "p1", "?c"), ("?c", "p2", "?d")]]
    triples = [(f"n{random.randrange(50)}", f"p{random.randrange(3)}", f"n{random.randrange(50)}") for _ in range(200)]
    loads: dict[str, int] = {}
    for name, strategy in STRATEGIES.items():
        network = paper.Network(strategy())
        network.submit(asked[0])
        for each in triples:
            network.publish(each)
        loads[name] = len(network.load)
    assert loads["cqc"] == 3
    assert loads["csbv"] > 50


def by_answer(found: Counter[Key]) -> Counter[tuple[int, tuple[tuple[str, str], ...]]]:
    bag: Counter[tuple[int, tuple[tuple[str, str], ...]]] = Counter()
    for (number, _, told), count in found.items():
        bag[number, told] += count
    return bag


def bindings(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (each.partition("=") for each in text.split(" "))
    return tuple(sorted((name[1:], f"<{EX}{value}>") for name, _, value in pairs))
