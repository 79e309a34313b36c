"""Pairs of a batch, and what is too much or too odd to be looked at one by one."""

from __future__ import annotations

from tests.matching.interpreter.oracles import EX, PREFIXES, batch, event, lifted, singly
from triplewire.matching.interpreter.matcher import MATCH, InterpreterBatch, interpret_shape
from triplewire.model import MATCHES, Event, Kind, Subscription

ASKED = PREFIXES + "SELECT ?o { ?o :value ?v FILTER(CONTAINS(STR(?v), 'a')) OPTIONAL { ?o :unit ?u } }"
EVENTS = batch([event(("o", "value", f'"{text}"')) for text in ("a", "b", "ba", "\\u0001a")])


def subscription(since: int) -> Subscription:
    asked = lifted(ASKED)
    return Subscription(str(since), ASKED, Kind.BINDINGS, asked.shape.key, asked.constants, since=since)


def test_pairs_are_decided_or_given_back() -> None:
    two, one = subscription(2), subscription(1)
    found, left = InterpreterBatch(EVENTS).decide(
        [(2, two), (0, two), (0, one), (1, one), (3, one)], interpret_shape(lifted(ASKED).shape)
    )
    assert found.schema == MATCHES
    told = [(row["position"], row["subscription"], row["terms"]) for row in found.to_pylist()]
    assert told == [(10, 1, ["", f"<{EX}o>"]), (10, 2, ["", f"<{EX}o>"]), (12, 2, ["", f"<{EX}o>"])]
    assert left == [(3, one)]


def test_nothing_comes_of_nothing() -> None:
    found, left = InterpreterBatch(EVENTS).decide([], interpret_shape(lifted(ASKED).shape))
    assert (found.num_rows, found.schema, left) == (0, MATCHES, [])


def test_a_shape_that_is_not_known_is_given_back_whole() -> None:
    pairs = [(0, subscription(1))]
    found, left = InterpreterBatch(EVENTS).decide(
        pairs, interpret_shape(lifted(PREFIXES + "SELECT (NOW() AS ?n) { ?o :value ?v }").shape)
    )
    assert (found.num_rows, left) == (0, pairs)


def test_what_is_too_much_work_is_undecided() -> None:
    """A product of four patterns would have 2,560,000 solutions."""
    many = batch([event(*((f"s{number}", "p", f"o{number}") for number in range(40)))])
    product = " . ".join(f"?s{number} :p ?o{number}" for number in range(4))
    assert singly(PREFIXES + f"SELECT * {{ {product} FILTER(REGEX(STR(?s0), 's')) }}", many) == [None]
    assert singly(PREFIXES + f"SELECT * {{ {product} OPTIONAL {{ ?s0 :q ?x }} }}", many) == [None]


def test_an_event_that_repeats_itself_is_undecided() -> None:
    line = f'<{EX}o>\t<{EX}value>\t"a"'
    assert singly(ASKED, batch([Event(f"{EX}event", f"{line}\n{line}")])) == [None]


def test_more_solutions_than_are_told_are_for_the_evaluator() -> None:
    many = batch([event(*((f"s{number}", "p", "o") for number in range(101)))])
    assert singly(PREFIXES + "SELECT * { ?a :p ?x . ?b :p ?y FILTER(REGEX(STR(?x), 'o')) }", many) == [None]
    assert singly(PREFIXES + "SELECT * { ?a :p ?x . ?b :p ?y OPTIONAL { ?x :q ?z } }", many) == [None]
    assert singly(PREFIXES + "SELECT * { ?a :p ?x . ?b :p ?y OPTIONAL { ?x :q ?z } }", many, Kind.SIGNAL) == [MATCH]
