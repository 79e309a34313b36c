"""Both tiers together, with guards and one by one, find of any subscription what the evaluator finds alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.differential.data import Data, data
from tests.differential.grammar import Question, one_event
from tests.differential.pairs import examples, seed_of
from tests.matching.index.test_matcher import evaluator, expanded
from tests.matching.interpreter.oracles import EX, PREFIXES, event
from tests.matching.interpreter.test_matcher import events
from tests.matching.subscriptions import registered
from tests.matching.test_evaluator import entries
from triplewire.matching.index import Guards
from triplewire.matching.matcher import Matcher
from triplewire.matching.shapes import lift
from triplewire.model import Event, Kind
from triplewire.model.errors import Unsupported
from triplewire.model.events import OpaquePayload
from triplewire.sparql import parse_query
from triplewire.storage.registry.ports import RegistryChange

READING = event(("o", "key", "k1"), ("o", "value", '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'))
OTHER = event(("o", "key", "k2"), ("o", "value", '"5.0"^^<http://www.w3.org/2001/XMLSchema#decimal>'), id=f"{EX}e2")
FOREIGN = event(("a", "b", "c"), id=f"{EX}e3")

CHOSEN = [
    "ASK { { ?o :key :k1 ; :value ?v FILTER(?v > 3) } UNION { ?o :key :k2 ; :value ?v FILTER(?v > 9) } }",
    "ASK { { ?o :key :k1 } UNION { ?o :b ?c } }",
    "ASK { { ?o :key :k1 } UNION { ?o :key :k1 . ?o :none ?n } UNION { ?o :key :k2 } }",
    "SELECT (AVG(?v) AS ?mean) { ?o :key :k1 ; :value ?v } HAVING (AVG(?v) > 3)",
    "SELECT (AVG(?v) AS ?mean) { ?o :key :k1 ; :value ?v } HAVING (AVG(?v) > -3)",
    "SELECT (COUNT(*) AS ?n) { ?o :key :k1 } HAVING (COUNT(*) = 0)",
    "SELECT (COUNT(*) AS ?n) { ?o :key :k1 } HAVING (EXISTS { ?a :b ?c })",
    "SELECT (MAX(?v) AS ?most) { ?o :value ?v }",
    "ASK { ?o :value ?v FILTER(?v = 7) }",
    "ASK { ?o :value ?v FILTER(?v = 7.0) }",
    "ASK { ?o :value ?v FILTER(?v IN (5, 8)) }",
    "ASK { ?o :value ?v FILTER(?v = 5e0) }",
    "ASK { ?o :value ?v FILTER(?v = 7.00000000000000000000000000001) }",
    "ASK { { ?o :key :k1 } UNION { ?o :key :k2 } { ?x :value 7 } UNION { ?x :value 5.0 } }",
    "ASK { { ?o :key :k1 } UNION { ?p :key :k2 } { ?x :key :k1 } UNION { ?x :key :k3 } }",
    "ASK { ?o :key :k1 FILTER NOT EXISTS { ?o :value ?v FILTER(?v > 7) } }",
]


def pairs(changes: list[RegistryChange], published: list[Event]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """By both tiers, and by the evaluator: where subscriptions were made, and the positions of events."""
    batch = entries({100 + at: each for at, each in enumerate(published)})
    together, alone = (
        expanded(made(changes).match(batch), batch, changes) for made in (Matcher.from_changes, evaluator)
    )
    return set(together), set(alone)


def test_chosen_ones() -> None:
    changes = [each for at, text in enumerate(CHOSEN, 1) for each in registered(at, PREFIXES + text, Kind.SIGNAL)]
    precise = event(("o", "value", '"7.00000000000000000000000000001"^^<http://www.w3.org/2001/XMLSchema#decimal>'))
    together, alone = pairs(changes, [READING, OTHER, FOREIGN, precise])
    assert together == alone
    assert {made for made, _ in together} >= {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}


@pytest.mark.parametrize("text", CHOSEN[:3] + CHOSEN[3:6] + CHOSEN[7:8])
def test_what_guards_them(text: str) -> None:
    shape = lift(parse_query(PREFIXES + text), solutions=False).shape
    open_ = "UNION { ?o :b ?c }" in text
    assert (Guards(shape).program is None) is open_
    assert Guards(shape).sure is not ("(AVG" in text or "(COUNT" in text or "(MAX" in text)


@pytest.mark.parametrize("part", range(2))
def test_generated_ones(part: int) -> None:
    """In parts, which can run side by side."""

    @seed_of(part)
    @examples(10)
    @given(data, st.lists(one_event, min_size=3, max_size=3))
    def answers(given: Data, questions: list[Question]) -> None:
        changes = [each for at, question in enumerate(questions, 1) for each in _registered(at, question.text)]
        together, alone = pairs(changes, events(given))
        assert together == alone, [each.text for each in questions]

    answers()


def _registered(position: int, text: str) -> list[RegistryChange]:
    try:
        return registered(position, text, Kind.SIGNAL)
    except Unsupported:
        return []


def test_what_is_no_rdf_matches_nothing() -> None:
    changes = registered(1, "ASK { ?s ?p ?o }", Kind.SIGNAL)
    carried = Event("urn:e", OpaquePayload("text/csv", b"a,b").text("urn:e"))
    assert pairs(changes, [READING, carried, OTHER]) == ({(1, 100), (1, 102)}, {(1, 100), (1, 102)})
    assert pairs(changes, [carried]) == (set(), set())
