"""Filters that are more than the index decides, through a whole matcher: as they are meant, whoever decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.matching.filters import generated, reference
from tests.matching.filters.worlds import EX, constraint, event, loaded
from tests.matching.interpreter.filters import lifted
from tests.matching.test_evaluator import entries
from triplewire.matching.filters import parse_filters
from triplewire.matching.index import Guards
from triplewire.matching.matcher import Matcher
from triplewire.model import Event, Kind, Subscription
from triplewire.model.terms import XSD, iri, literal
from triplewire.storage.registry.ontologies import ONTOLOGY
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

FIRST = 1_000
"""The position of the first event."""


def made(position: int, document: Mapping[str, Any]) -> list[RegistryChange]:
    """The changes that making a subscription at a position leads to."""
    asked = lifted(document)
    subscription = Subscription(str(position), "", Kind.SIGNAL, asked.shape.key, asked.constants)
    return [
        RegistryChange(position, SHAPE, asked.shape.key, asked.shape.to_value()),
        RegistryChange(position, SUBSCRIPTION, subscription.id, subscription_to_value(subscription)),
    ]


def said(position: int, triples: set[reference.Triple]) -> RegistryChange:
    text = "\n".join("\t".join(each) for each in sorted(triples))
    return RegistryChange(position, ONTOLOGY, "drawn", {"text": text, "triples": 0, "classes": 0, "properties": 0})


def matched(matcher: Matcher, events: Sequence[Event]) -> set[tuple[int, int]]:
    """The numbers of event and subscription. Groups that the index decides would be named otherwise."""
    found = matcher.match(entries({FIRST + at: each for at, each in enumerate(events)}))
    assert found["subscription"].null_count == 0
    return {(row["position"] - FIRST, row["subscription"]) for row in found.to_pylist()}


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 2**32))
def test_bags_follow_an_ontology_that_is_replaced_in_mid_stream(seed: int) -> None:
    random = Random(seed)
    before, after = generated.ontology(random), generated.ontology(random)
    documents = {at: generated.bagged(random) for at in range(10, 20)}
    changes = [said(1, before), *(each for at, document in documents.items() for each in made(at, document))]
    events = [generated.event(random, at) for at in range(16)]
    found = matched(Matcher.from_changes([*changes, said(FIRST + 8, after)]), events)
    for at, each in enumerate(events):
        knowledge = reference.Knowledge(before if at < 8 else after)
        wanted = {
            (at, number)
            for number, asked in documents.items()
            if reference.holds(parse_filters(asked), each, knowledge)
        }
        assert {pair for pair in found if pair[0] == at} == wanted, (each.text, documents)


def test_who_lives_where_follows_an_ontology_that_is_replaced_in_mid_stream() -> None:
    asked = {"filter": [constraint("ex:a", "@*", ["ex:city", "ex:Dublin"]), constraint("ex:n", "=", 7)]}
    here = event("ex:s ex:a ex:Jones ; ex:n 7 .")
    changes = [loaded("ex:Jones ex:city ex:Carlow ."), *made(10, asked)]
    turned = loaded("ex:Jones ex:city ex:Dublin .", position=FIRST + 2)
    back = loaded("ex:Jones ex:city ex:Carlow .", position=FIRST + 3)
    assert matched(Matcher.from_changes([*changes, turned, back]), [here] * 5) == {(2, 10)}


ATTRIBUTE, NUMBER = iri(EX + "a"), iri(EX + "n")
BAGS = [("#=", []), ("#<", []), ("#<", [1, 2]), ("#>", [])]


@pytest.mark.parametrize(("op", "values"), BAGS)
def test_a_bag_that_may_be_empty_still_needs_its_attribute(op: str, values: list[int]) -> None:
    """An empty list is one; so that a guard may ask for the predicate."""
    document = {"filter": [constraint("ex:a", op, values)]}
    events = [event("ex:s ex:b 1 ."), event("ex:s ex:a () ."), event("ex:s ex:b () .")]
    asked = parse_filters({"prefixes": {"ex": EX}, **document})
    assert [reference.holds(asked, each, reference.Knowledge()) for each in events] == [False, True, False]
    assert matched(Matcher.from_changes(made(10, document)), events) == {(1, 10)}


@pytest.mark.parametrize("more", [constraint("ex:a", "#=", [1]), constraint("ex:a", "@*", ["ex:p", "ex:o"])])
@pytest.mark.parametrize(
    ("op", "values"), [("=", (1, 2)), ("=", ("one", "two")), ("@=", ("ex:One", "ex:Two")), (">*", ("on", "tw"))]
)
def test_what_else_a_filter_names_guards_it(more: dict[str, object], op: str, values: tuple[object, object]) -> None:
    asked = [lifted({"filter": [more, constraint("ex:n", op, value)]}) for value in values]
    guards = Guards(asked[0].shape)
    assert asked[0].shape == asked[1].shape
    assert guards.of(asked[0].constants).group != guards.of(asked[1].constants).group


def test_a_bag_alone_is_guarded_by_its_attribute() -> None:
    asked = lifted({"filter": [constraint("ex:a", "#=", [1])]})
    program = Guards(asked.shape).program
    assert program is not None
    assert program.fixed == (ATTRIBUTE,)


SEVEN = [
    *(literal(each, XSD + "integer") for each in ("7", "07", "+7", "7" * 30)),
    *(literal(each, XSD + "decimal") for each in ("7.0", "7.0000000000000000000001", "07." + "0" * 30)),
    *(literal(each, XSD + "double") for each in ("7", "7e0", "0.7E1", "NaN")),
    *(literal(each, XSD + "float") for each in ("7", "7.5")),
    literal("7", XSD + "byte"),
    literal("7"),
    literal("x", XSD + "integer"),
]


LONG, FLOAT = {"@value": "7" * 30, "@type": XSD + "integer"}, {"@value": "7", "@type": XSD + "float"}


@pytest.mark.parametrize("value", [7, LONG, FLOAT])
def test_guards_let_numbers_through_in_whatever_form(value: object) -> None:
    """With a bag or without one they are equal to the same."""
    texts = [f"<{EX}s>\t{ATTRIBUTE}\t<{EX}o>\n<{EX}s>\t{NUMBER}\t{each}" for each in SEVEN]
    events = [Event(f"{EX}event/{at}", text) for at, text in enumerate(texts)]
    number = constraint("ex:n", "=", value)
    bag = constraint("ex:a", "#=", [{"@id": "ex:o"}])
    plain = Matcher.from_changes(made(10, {"filter": [constraint("ex:n", "#>/=", [value])]}))
    found = matched(Matcher.from_changes(made(10, {"filter": [bag, number]})), events)
    assert found == matched(plain, events)
    assert found
