"""Subscriptions of those who see a part of events: they find what pyoxigraph finds on that part, taken out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.results import Answer, Rows
from tests.differential.data import Data, data
from tests.differential.grammar import Question, one_event
from tests.differential.pairs import examples, hold_on_event, seed_of
from tests.differential.vocabulary import EX, LINKS, RESOURCES, VALUE
from tests.matching.interpreter.oracles import PREFIXES
from tests.matching.interpreter.test_matcher import events
from tests.matching.test_evaluator import entries
from triplewire.http.formats.notifications import MatchSelector, MatchSolutions, group_matches
from triplewire.matching.index.memberships import shape_memberships
from triplewire.matching.matcher import Matcher
from triplewire.matching.prepared_queries import PreparedShapes, lift_request
from triplewire.matching.shape_requests import EventSelector, ShapeRequest
from triplewire.matching.shapes import LiftedShape, Shape, expand_bindings, expand_terms
from triplewire.matching.visibility import redact_entries
from triplewire.model import END, Event, Kind, Subscription
from triplewire.model.errors import Unsupported
from triplewire.model.terms import RDF_TYPE
from triplewire.security.visibility import PatternSet, Visibility
from triplewire.sparql import Query
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

CLASSES = (f"<{EX}C>", f"<{EX}D>")
TYPED = tuple(f"{each} {RDF_TYPE} {kind}" for each in RESOURCES for kind in CLASSES)
NESTED = (f"{RESOURCES[0]} {LINKS[0]} <<( {RESOURCES[1]} {LINKS[1]} {RESOURCES[2]} )>>",)
VISIBILITIES = [
    Visibility(predicates=PatternSet.of(["*"], [LINKS[0]])),
    Visibility(predicates=PatternSet.of(["*"], [VALUE])),
    Visibility(predicates=PatternSet.of(["*"], [RDF_TYPE])),
    Visibility(predicates=PatternSet.of([f"<{EX}*"], [LINKS[1]])),
    Visibility(predicates=PatternSet.of([LINKS[0], RDF_TYPE])),
    Visibility(predicates=PatternSet.of([])),
    Visibility(classes=PatternSet.of(["*"], [CLASSES[0]])),
    Visibility(classes=PatternSet.of([CLASSES[0]])),
    Visibility(classes=PatternSet.of(["*"], [CLASSES[1]]), predicates=PatternSet.of(["*"], [VALUE])),
]
FLAT = [
    "SELECT * { ?s :p ?o }",
    "SELECT ?s { ?s :p ?o . ?o :q ?x }",
    "SELECT ?s ?v { ?s :v ?v FILTER(?v > 0) }",
    "SELECT * { ?s ?p ?o }",
    "SELECT * { :a ?p ?o . ?o :q ?x }",
    "SELECT * { ?s a :C ; :p ?o }",
    "SELECT * { ?s a ?kind }",
    "SELECT * { ?s :p :b }",
    "SELECT DISTINCT ?s { ?s :q ?o . ?s :v ?v }",
    "SELECT * { GRAPH ?g { ?s :p ?o } }",
]

Redacted = tuple[tuple[str, ...], ...]


def by_hand(given: Data, visibility: Visibility) -> Data:
    """The rules, word by word, over triples that pyoxigraph has read."""
    return Data(tuple(tuple(_left(lines, visibility)) for lines in given.events))


def _left(lines: Sequence[str], visibility: Visibility) -> list[str]:
    triples = [(line, next(iter(ox.parse(f"{line} .", format=ox.RdfFormat.N_TRIPLES)))) for line in lines]
    hidden = {
        str(each.subject)
        for _, each in triples
        if str(each.predicate) == RDF_TYPE and _out(str(each.object), visibility.classes)
    }
    return [
        line
        for line, each in triples
        if not _out(str(each.predicate), visibility.predicates)
        and hidden.isdisjoint({str(each.subject), str(each.object)})
        and not isinstance(each.object, ox.Triple)
    ]


def _out(term: str, scope: PatternSet) -> bool:
    def meant(pattern: str) -> bool:
        return term.startswith(pattern[:-1]) if pattern.endswith("*") else term == pattern

    return any(map(meant, scope.denied)) or not any(map(meant, scope.allowed))


def changes_of(lifted: LiftedShape, kind: Kind) -> list[RegistryChange]:
    made = Subscription("1", None, kind, lifted.shape.key, lifted.constants)
    shape = RegistryChange(1, SHAPE, lifted.shape.key, lifted.shape.to_value())
    return [shape, RegistryChange(1, SUBSCRIPTION, "1", subscription_to_value(made))]


def answers(lifted: LiftedShape, kind: Kind, published: Sequence[Event]) -> list[Answer | None]:
    """What a subscriber is told of each event; None where nothing is."""
    batch = entries(dict(enumerate(published, start=10)))
    matches = Matcher.from_changes(changes_of(lifted, kind)).match(batch)
    shape = Shape.from_value(lifted.shape.to_value())
    wanted = [MatchSelector(1, END, shape_memberships(shape).of(lifted.constants))]
    rows = {row["position"]: row for row in redact_entries(batch, shape.visibility).to_pylist()}
    told: dict[int, Answer] = {}
    for group in group_matches(matches, wanted):
        for position, numbers in zip(group.positions, group.rows, strict=True):
            assert position not in told, "one match for each pair"
            told[position] = _answer(lifted, rows[position], MatchSolutions(matches), numbers)
    return [told.get(position) for position in batch["position"].to_pylist()]


def _answer(lifted: LiftedShape, row: dict[str, Any], solutions: MatchSolutions, numbers: Sequence[int]) -> Answer:
    assert solutions.limit(numbers) is None
    if not lifted.shape.solutions or lifted.shape.query.form == "ask":
        return True
    if isinstance(lifted.shape.query, Query):
        document = expand_terms(lifted.shape, solutions.terms(numbers))
    else:
        document = expand_bindings(lifted.shape, row, solutions.quads(numbers))
    read = ox.parse_query_results(json.dumps(document), format=ox.QueryResultsFormat.JSON)
    assert isinstance(read, ox.QuerySolutions)
    return Rows(tuple(each.value for each in read.variables), tuple(tuple(each) for each in read))


def _nothing(text: str, names: Sequence[str]) -> Answer:
    return False if "ASK" in text else Rows(tuple(names), ())


def hold(given: Data, question: Question, visibility: Visibility) -> None:
    try:
        lifted = lift_request(ShapeRequest(question.text, True, visibility=visibility))
    except Unsupported:
        return
    left = by_hand(given, visibility)
    for graph, found in zip(given.graphs, answers(lifted, Kind.BINDINGS, events(given)), strict=True):
        if not left.events[left.graphs.index(graph)]:
            assert found is None, "an event of which nothing is visible is not there"
        else:
            none = _nothing(question.head, lifted.shape.query.projection)
            hold_on_event(left, graph, question, partial(_told, found, none))


def _told(found: Answer | None, none: Answer, text: str) -> Answer:
    return none if found is None else found


richer = st.builds(
    lambda given, more: Data(
        tuple(
            tuple(dict.fromkeys((*lines, *added)))
            for lines, added in zip(given.events, [*more, *[()] * len(given.events)], strict=False)
        )
    ),
    data,
    st.lists(st.lists(st.sampled_from((*TYPED, *NESTED)), max_size=3), min_size=3, max_size=3),
)
flat = st.sampled_from(FLAT).map(lambda text: Question("select", text.partition(" {")[0], text.partition(" {")[2][:-1]))


@pytest.mark.parametrize("part", range(2))
def test_generated_subscriptions(part: int) -> None:
    """In parts, which can run side by side."""

    @seed_of(part)
    @examples(12)
    @given(richer, one_event | flat, st.sampled_from(VISIBILITIES))
    def found(given: Data, question: Question, visibility: Visibility) -> None:
        hold(given, question, visibility)

    found()


@pytest.mark.parametrize("visibility", VISIBILITIES)
@pytest.mark.parametrize("kind", [Kind.SIGNAL, Kind.EVENT])
def test_every_event_is_told_of_which_something_is_visible(visibility: Visibility, kind: Kind) -> None:
    given = Data(
        ((*TYPED[:1], f"{RESOURCES[0]} {VALUE} {RESOURCES[1]}"), (f"{RESOURCES[1]} {LINKS[0]} {RESOURCES[2]}",))
    )
    found = answers(lift_request(ShapeRequest(None, False, visibility=visibility)), kind, events(given))
    assert [each is not None for each in found] == [bool(each) for each in by_hand(given, visibility).events]


@pytest.mark.parametrize("visibility", VISIBILITIES)
def test_a_vocabulary_that_is_hidden_is_none(visibility: Visibility) -> None:
    given = Data(((f"{RESOURCES[0]} {VALUE} {RESOURCES[1]}", f"{RESOURCES[1]} {LINKS[0]} {RESOURCES[2]}"),))
    asked = ShapeRequest(None, False, EventSelector(vocabulary=(f"{EX}v",)), visibility=visibility)
    (found,) = answers(lift_request(asked), Kind.SIGNAL, events(given))
    assert (found is not None) is any(VALUE in line for line in by_hand(given, visibility).events[0])


def test_what_the_index_decides_it_still_decides() -> None:
    denied = Visibility(predicates=PatternSet.of(["*"], [VALUE]))
    for text, decided in [
        ("ASK { ?s :p :b }", True),
        ("SELECT * { ?s :p ?o FILTER(?o > 3) }", True),
        ("ASK { ?s :v ?o }", True),
        ("ASK { ?s ?p ?o }", False),
        ("ASK { ?s :p ?o OPTIONAL { ?s :v ?v } }", False),
    ]:
        shape = lift_request(ShapeRequest(PREFIXES + text, text.startswith("SELECT"), visibility=denied)).shape
        assert (shape_memberships(shape).program is not None) is decided, text


def test_where_a_class_is_denied_the_index_decides_on_events_without_it() -> None:
    visibility = Visibility(classes=PatternSet.of(["*"], [f"<{EX}Secret>"]), predicates=PatternSet.of(["*"], [VALUE]))
    for text, decided in [
        ("ASK { ?s :p :b }", True),
        ("SELECT * { ?s :p ?o FILTER(?o > 3) }", True),
        ("ASK { ?s ?p ?o }", False),
        ("ASK { ?s :p ?o OPTIONAL { ?s :v ?v } }", False),
    ]:
        lifted = lift_request(ShapeRequest(PREFIXES + text, text.startswith("SELECT"), visibility=visibility))
        assert (shape_memberships(lifted.shape).program is not None) is decided, text
    lifted = lift_request(ShapeRequest(PREFIXES + "ASK { ?s :p ?o }", False, visibility=visibility))
    batch = entries(
        {
            10: Event(f"{EX}e1", f"<{EX}a>\t<{EX}p>\t<{EX}b>"),
            11: Event(f"{EX}e2", f"<{EX}a>\t<{EX}p>\t<{EX}b>\n<{EX}a>\t{RDF_TYPE}\t<{EX}Secret>"),
            12: Event(f"{EX}e3", f"<{EX}a>\t<{EX}p>\t<{EX}b>\n<{EX}c>\t{RDF_TYPE}\t<{EX}Secret>"),
        }
    )
    matches = Matcher.from_changes(changes_of(lifted, Kind.SIGNAL)).match(batch).to_pylist()
    told = [(each["position"], each["group"] is not None, each["subscription"]) for each in matches]
    assert told == [(10, True, None), (12, False, 1)]


def test_who_sees_all_quads_shares_the_shape_of_those_who_see_everything() -> None:
    text = PREFIXES + "ASK { ?s ?p ?o }"
    streams = Visibility(streams=PatternSet.of(["home"]), graphs=PatternSet.of([f"<{EX}*"]))
    assert lift_request(ShapeRequest(text, False, visibility=streams)) == lift_request(ShapeRequest(text, False))


def test_texts_that_differ_in_constants_are_lifted_once_and_never_for_another_visibility() -> None:
    made = list[ShapeRequest]()

    def make(asked: ShapeRequest) -> LiftedShape:
        made.append(asked)
        return lift_request(asked)

    texts = PreparedShapes(make)
    for visibility in (VISIBILITIES[0], VISIBILITIES[6], None):
        for name in "abcd":
            asked = ShapeRequest(PREFIXES + f"ASK {{ :{name} ?p ?o }}", False, visibility=visibility)
            assert texts.lift(asked) == lift_request(asked)
    assert len(made) == 3 * 3


def test_a_predicate_is_never_taken_for_another_one() -> None:
    texts, visibility = PreparedShapes(), VISIBILITIES[4]
    for name in "pqvp":
        asked = ShapeRequest(PREFIXES + f"ASK {{ ?s :{name} :b }}", False, visibility=visibility)
        assert texts.lift(asked) == lift_request(asked)
