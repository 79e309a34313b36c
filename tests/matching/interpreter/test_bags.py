"""Filters with bags, decided one by one: as they are meant, and as the evaluator decides them."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.matching.filters import generated, reference
from tests.matching.filters.test_operators import BAGS, CASES, CONFERENCES, CONTENT, STRICT
from tests.matching.filters.worlds import EX, World, constraint, event, loaded
from tests.matching.interpreter.filters import lifted, ontologies, singly
from triplewire.matching.filters import parse_filters
from triplewire.matching.interpreter.matcher import interpret_shape
from triplewire.matching.interpreter.patterns import has_pairing
from triplewire.matching.shapes import lift
from triplewire.model import Event
from triplewire.model.terms import XSD, literal
from triplewire.sparql import Const, Query, Var
from triplewire.sparql.algebra import Apply, Bag
from triplewire.storage.registry.ontologies import ONTOLOGY
from triplewire.storage.registry.ports import RegistryChange

KNOWN = ontologies([loaded(CONFERENCES)])


@pytest.mark.parametrize(("op", "value", "values", "holds"), [*CASES, *BAGS, *CONTENT])
def test_the_worked_examples(op: str, value: object, values: str, holds: bool) -> None:
    asked = {"filter": [constraint("ex:a", op, value)]}
    assert singly(asked, [event(f"ex:s ex:a {values} .")], KNOWN) == [holds]


@pytest.mark.parametrize(("op", "value", "values", "holds"), STRICT)
def test_the_worked_examples_of_strict_operators(op: str, value: object, values: str, holds: bool) -> None:
    asked = {"filter": [constraint("ex:a", op, value, strict=True)]}
    assert singly(asked, [event(f"ex:s ex:a {values} .")], KNOWN) == [holds]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_singles_say_what_the_reference_says(seed: int) -> None:
    """And are never undecided: there is nothing but IRIs, strings and plain numbers."""
    random = Random(seed)
    triples = generated.ontology(random)
    text = "\n".join("\t".join(each) for each in sorted(triples))
    known = ontologies(
        [RegistryChange(1, ONTOLOGY, "drawn", {"text": text, "triples": 0, "classes": 0, "properties": 0})]
    )
    events = [_once(generated.event(random, at)) for at in range(12)]
    for draw in (generated.document, generated.bagged):
        for document in [draw(random) for _ in range(6)]:
            wanted = [reference.holds(parse_filters(document), each, reference.Knowledge(triples)) for each in events]
            assert singly(document, events, known) == wanted, (document, text)


def _once(given: Event) -> Event:
    """One in which no triple comes twice, as those of the log are."""
    return Event(given.id, "\n".join(dict.fromkeys(given.text.split("\n"))))


ODD = [
    "ex:s ex:a ex:c . ex:c rdf:first 1, 2 ; rdf:rest ex:d . ex:d rdf:first 3 ; rdf:rest rdf:nil .",
    "ex:s ex:a ex:c . ex:c rdf:first 1 ; rdf:rest ex:c .",
    "ex:s ex:a ex:c . ex:c rdf:first 1 ; rdf:rest ex:d . ex:d rdf:first 2 ; rdf:rest ex:c .",
    "ex:s ex:a ex:c . ex:c rdf:first 1 ; rdf:rest ex:d, ex:e . ex:d rdf:first 2 . ex:e rdf:first 3 ; rdf:rest ex:d .",
    "ex:s ex:a ex:c . ex:c rdf:rest ex:d . ex:d rdf:first 2 ; rdf:rest rdf:nil .",
    "ex:s ex:a ex:c . ex:c rdf:rest rdf:nil .",
    "ex:s ex:a ex:c ; ex:b ex:c . ex:t ex:a ex:c . ex:c rdf:first 1 .",
    "ex:s ex:a rdf:nil, 1 . rdf:nil rdf:first 2 .",
    "ex:s ex:a 1, (1 2 (3)) .",
    "ex:s ex:b 1 .",
]
"""Lists that are none, or no good ones."""


def test_odd_lists_count_as_they_do_for_the_evaluator() -> None:
    events = [event(f"@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . {each}") for each in ODD]
    world = World(events)
    matched = 0
    for bag in ("#=", "#<", "#>"):
        for values in ([1], [1, 2], [1, 1], [1, 2, 3], [1, 1, 2, 2], [2], []):
            document = {"filter": [constraint("ex:a", bag, values)]}
            expected = {at for at, _ in world.matches([document])}
            assert singly(document, events) == [at in expected for at in range(len(events))], document
            matched += len(expected)
    assert matched > 20


def test_odd_values_are_undecided_or_decided_as_the_evaluator_does() -> None:
    terms = [
        *(literal(each, XSD + "integer") for each in ("7", "07", "x", "12345678901234567890")),
        *(literal(each, XSD + "float") for each in ("7", "0.1")),
        literal("7", XSD + "decimal"),
        literal("2026-11-16T08:00:00", XSD + "dateTime"),
        literal("a", language="en"),
        f"<{EX}a>",
    ]
    random = Random(5)
    bags = [random.sample(terms, random.randint(1, 3)) for _ in range(60)]
    events = [
        Event(f"{EX}event/{at}", "\n".join(f"<{EX}s>\t<{EX}a>\t{each}" for each in bag)) for at, bag in enumerate(bags)
    ]
    world, told = World(events), list[bool | None]()
    for relation in ("=", "!=", "<", "@>"):
        for values in ([7], [7, 8.5], [7, {"@value": "a", "@language": "en"}]):
            given = [{"@id": "ex:a"}] * len(values) if relation == "@>" else values[:2] if relation != "<" else [7, 8.5]
            document = {"filter": [constraint("ex:a", f"#>/{relation}", given)]}
            expected = {at for at, _ in world.matches([document])}
            found = singly(document, events, KNOWN)
            told += found
            assert [at for at, each in enumerate(found) if each not in (None, at in expected)] == [], document
    assert 0 < told.count(None) < len(told) / 2


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 63), max_size=6))
def test_each_has_one_of_its_own_where_some_way_gives_it_one(masks: list[int]) -> None:
    ways = permutations(range(6), len(masks))
    assert has_pairing(masks) is any(all(mask >> at & 1 for mask, at in zip(masks, way, strict=True)) for way in ways)


def test_a_long_path_is_found() -> None:
    """Each new one makes all before it move on."""
    assert has_pairing([*(0b11 << at for at in reversed(range(31))), 1])
    assert not has_pairing([*(0b11 << at for at in reversed(range(31))), 1, 1])


def test_what_is_too_much_work_is_undecided() -> None:
    many = Event(f"{EX}event", "\n".join(f"<{EX}s{at}>\t<{EX}a>\t<{EX}o{at % 7}>" for at in range(10_000)))
    cells = " ".join(map(str, range(11_000)))
    asked = [constraint("ex:a", "#>", [{"@id": "ex:o1"}] * 3)]
    assert singly({"filter": asked}, [many, event(f"ex:s ex:a ({cells}) .")]) == [None, None]
    assert singly({"filter": [constraint("ex:a", "#<", [1])]}, [many]) == [False]


def test_without_ontologies_nothing_is_said_of_names() -> None:
    events = [event("ex:s ex:a ex:Paper .")]
    assert singly({"filter": [constraint("ex:a", "#=/@>", ["ex:Contribution"])]}, events) == [None]
    assert singly({"filter": [constraint("ex:a", "@=", "ex:Contribution")]}, events) == [None]
    assert singly({"filter": [constraint("ex:a", "#=", [{"@id": "ex:Paper"}])]}, events) == [True]


def test_bags_that_no_filter_asks_for_are_left_alone() -> None:
    outside = Bag(Const(f"<{EX}a>"), "#=", "v", (Apply("=", (Var("v"), Var("elsewhere"))),))
    header = Bag(Const("<https://triplewire.dev/ns#stream>"), "#=", "v", ())
    assert [interpret_shape(lift(Query("ask", each), solutions=False).shape) for each in (outside, header)] == [
        None,
        None,
    ]
    assert interpret_shape(lifted({"filter": [constraint("ex:a", "#=", [])]}).shape) is not None
