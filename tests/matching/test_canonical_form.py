"""Queries that mean the same, up to names and order, have one shape; what they mean stays."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import generated
from tests.differential.grammar import Question, asks, selects
from tests.matching.test_evaluator import entries, evaluator, pairs
from triplewire.matching.canonical_form import ConstantSymmetries, canonical_form, order_patterns, rename_variables
from triplewire.matching.prepared_queries import lift_request
from triplewire.matching.shape_requests import ShapeRequest
from triplewire.matching.shapes import LiftedShape, check_subscribable, lift
from triplewire.model import Kind, Subscription
from triplewire.model.errors import Unsupported
from triplewire.sparql import Const, Pattern, Var, parse_query
from triplewire.sparql.traversal import iterate_parts
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value


def same(one: str, other: str, *, solutions: bool) -> bool:
    settled = ConstantSymmetries().sort_constants
    return settled(lift_request(ShapeRequest(one, solutions))) == settled(lift_request(ShapeRequest(other, solutions)))


ALIKE = [
    ("ASK { ?s <urn:p> <urn:a> }", "PREFIX e: <urn:> ASK WHERE { ?x e:p e:a . }"),
    (
        "ASK { ?s <urn:p> <urn:a> ; <urn:q> ?v FILTER(?v > 3) FILTER(?v < 9) }",
        "ASK { ?x <urn:q> ?y FILTER(?y < 9) ?x <urn:p> <urn:a> FILTER(?y > 3) }",
    ),
    ("ASK { ?s <urn:p> <urn:a>, <urn:b> }", "ASK { ?s <urn:p> <urn:b>, <urn:a> }"),
    ("ASK { { ?s <urn:p> 1 } { ?s <urn:q> 2 } }", "ASK { ?a <urn:q> 2 . ?a <urn:p> 1 }"),
    ("ASK { GRAPH ?g { ?s <urn:p> 1 } ?s <urn:q> 2 }", "ASK { ?s <urn:q> 2 GRAPH ?h { ?s <urn:p> 1 } }"),
    (
        "ASK { ?x <urn:k> ?y . ?y <urn:k> ?z . ?z <urn:k> ?x }",
        "ASK { ?b <urn:k> ?c . ?a <urn:k> ?b . ?c <urn:k> ?a }",
    ),
    (
        "ASK { ?x <urn:p> ?y . ?x <urn:q> 1 . ?a <urn:p> ?b . ?a <urn:r> 2 }",
        "ASK { ?a <urn:r> 2 . ?x <urn:p> ?y . ?a <urn:p> ?b . ?x <urn:q> 1 }",
    ),
    ("ASK { ?s <urn:p> [ <urn:q> 1 ] }", "ASK { _:x <urn:q> 1 . ?s <urn:p> _:x }"),
    (
        "ASK { ?s <urn:p> ?v FILTER REGEX(?v, 'a') FILTER REGEX(?v, 'b') }",
        "ASK { ?s <urn:p> ?v FILTER REGEX(?v, 'b') FILTER REGEX(?v, 'a') }",
    ),
    (
        "ASK { ?s <urn:p> ?v ; <urn:r> 5 OPTIONAL { ?v <urn:q> ?w } FILTER(!BOUND(?w)) }",
        "ASK { ?t <urn:r> 5 ; <urn:p> ?a OPTIONAL { ?a <urn:q> ?b } FILTER(!BOUND(?b)) }",
    ),
    (
        "SELECT ?s { ?s <urn:p> ?o } GROUP BY ?s HAVING (COUNT(?o) > 1)",
        "SELECT ?a { ?a <urn:p> ?b } GROUP BY ?a HAVING (COUNT(?b) > 1)",
    ),
    (
        "SELECT ?s { ?s <urn:p> ?o BIND(?o + 1 AS ?n) VALUES ?n { 1 2 } }",
        "SELECT ?a { ?a <urn:p> ?b BIND(?b + 1 AS ?c) VALUES ?c { 1 2 } }",
    ),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_means_the_same_is_the_same(one: str, other: str) -> None:
    assert same(one, other, solutions=False)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ASK { ?s <urn:p> 1 ; <urn:q> 2 }", "ASK { ?s <urn:p> 1 . ?t <urn:q> 2 }"),
        ("ASK { ?s <urn:p> 1 ; <urn:q> 2 }", "ASK { ?s <urn:p> 2 ; <urn:q> 1 }"),
        ("ASK { ?s <urn:p> ?a, ?b FILTER(?a > ?b) }", "ASK { ?s <urn:p> ?a, ?b FILTER(?a > ?a) }"),
        ("ASK { ?s <urn:p> ?o MINUS { ?o <urn:q> ?s } }", "ASK { ?s <urn:p> ?o MINUS { ?s <urn:q> ?o } }"),
        ("ASK { <urn:s> <urn:p> ?o }", "ASK { ?o <urn:p> <urn:s> }"),
    ],
)
def test_what_means_something_else_is_not(one: str, other: str) -> None:
    assert not same(one, other, solutions=False)


def test_names_that_are_told_matter_where_solutions_are() -> None:
    assert same("SELECT ?v { ?s <urn:p> ?v }", "SELECT ?v { ?x <urn:p> ?v }", solutions=True)
    assert not same("SELECT ?v { ?s <urn:p> ?v }", "SELECT ?w { ?s <urn:p> ?w }", solutions=True)
    assert same("SELECT ?v { ?s <urn:p> ?v }", "SELECT ?w { ?s <urn:p> ?w }", solutions=False)


NODES = [Var("a"), Var("b"), Var("c"), Const("<urn:x>"), Const("<urn:y>")]
PATTERNS = st.builds(Pattern, st.sampled_from(NODES), st.just(Const("<urn:p>")), st.sampled_from(NODES))


@settings(max_examples=60, deadline=None)
@given(st.lists(PATTERNS, min_size=1, max_size=5, unique=True), st.permutations(["a", "b", "c"]), st.randoms())
def test_the_shape_is_the_same_in_any_order_and_under_any_names(
    patterns: list[Pattern], names: list[str], random: Random
) -> None:
    def text(each: Pattern, naming: dict[str, str]) -> str:
        nodes = [f"?{naming[node.name]}" if isinstance(node, Var) else node for node in (each.subject, each.object)]
        first, last = (node.term if isinstance(node, Const) else str(node) for node in nodes)
        return f"{first} <urn:p> {last}"

    shuffled = random.sample(patterns, len(patterns))
    one = " . ".join(text(each, dict(zip("abc", "abc", strict=True))) for each in patterns)
    other = " . ".join(text(each, dict(zip("abc", names, strict=True))) for each in shuffled)
    shapes = [lift_request(ShapeRequest(f"ASK {{ {each} }}", False)).shape for each in (one, other)]
    assert shapes[0] == shapes[1]


@settings(max_examples=50, deadline=None)
@given(selects() | asks())
def test_renaming_is_undone_by_renaming_back(question: Question) -> None:
    query = parse_query(question.text)
    kept = frozenset(query.projection)
    once = rename_variables(query, kept)
    assert rename_variables(once, kept) == once
    assert once.projection == query.projection
    before = {part.name for part in iterate_parts(query.where) if isinstance(part, Var)}
    assert len({part.name for part in iterate_parts(once.where) if isinstance(part, Var)}) == len(before)


def test_nothing_is_lost_on_the_way() -> None:
    random = Random(7)
    for _ in range(50):
        query = parse_query(generated.sparql(random))
        once = canonical_form(query, solutions=True)
        assert canonical_form(once, solutions=True) == once
        assert once.projection == query.projection


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.lists(selects() | asks(), min_size=2, max_size=4))
def test_what_matches_stays_the_same(seed: int, questions: list[Question]) -> None:
    random = Random(seed)
    events = {1_000 + number: generated.event(random, number) for number in range(12)}
    texts = [question.text for question in questions if taken(question.text)]
    texts += [generated.sparql(random) for _ in range(4)]
    plain, written = list[RegistryChange](), list[RegistryChange]()
    for at, text in enumerate(texts, 1):
        plain += registered(at, lift(parse_query(text), solutions=False))
        written += registered(at, lift_request(ShapeRequest(text, False)))
    found = evaluator(*written).match(entries(events))
    assert pairs(found) == pairs(evaluator(*plain).match(entries(events)))


def taken(text: str) -> bool:
    """Can it be asked of one event, each time with the same answer?"""
    try:
        check_subscribable(parse_query(text))
    except Unsupported:
        return False
    return True


def registered(at: int, lifted: LiftedShape) -> list[RegistryChange]:
    made = Subscription(str(at), None, Kind.SIGNAL, lifted.shape.key, lifted.constants)
    return [
        RegistryChange(at, SHAPE, made.shape, lifted.shape.to_value()),
        RegistryChange(at, SUBSCRIPTION, made.id, subscription_to_value(made)),
    ]


def test_many_patterns_that_look_alike_take_no_long_time() -> None:
    patterns = [Pattern(Var(f"s{number}"), Const("<urn:p>"), Var(f"o{number}")) for number in range(256)]
    assert sorted(order_patterns(patterns, (), ())[0], key=str) == sorted(patterns, key=str)
