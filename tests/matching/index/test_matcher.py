"""Index and evaluator find the same, and what pyoxigraph finds: which subscriptions match, and their solutions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.differential.pairs import examples, seed_of
from tests.matching.index.generated import events, queries
from tests.matching.subscriptions import ended, registered
from tests.matching.test_evaluator import entries
from triplewire.http.formats.notifications import MatchSelector, MatchSolutions, group_matches
from triplewire.matching.evaluator import Evaluator
from triplewire.matching.index import Memberships
from triplewire.matching.matcher import Matcher
from triplewire.matching.shapes import Shape, expand_bindings
from triplewire.model import END, Event, Kind
from triplewire.sparql import Conjunction
from triplewire.storage.registry.ontologies import BATCH_EVENTS
from triplewire.storage.registry.ports import RegistryChange

Found = dict[tuple[int, int], object]
"""By subscription and position: the solutions as a bag, or nothing where none are asked for."""


def known(changes: Sequence[RegistryChange]) -> dict[int, tuple[Shape, tuple[str, ...]]]:
    """Shapes and constants of subscriptions, by where they were made."""
    shapes = {each.key: Shape.from_value(each.value) for each in changes if each.kind == "shape" and each.value}
    return {
        each.position: (shapes[each.value["shape"]], tuple(each.value["constants"]))
        for each in changes
        if each.kind == "subscription" and each.value
    }


def expanded(matches: pa.Table, batch: pa.Table, changes: Sequence[RegistryChange]) -> Found:
    """What the matches say to each subscription."""
    subscriptions = known(changes)
    ends = {int(each.key): each.position for each in changes if each.kind == "subscription" and each.value is None}
    wanted = [
        MatchSelector(since, ends.get(since, END), Memberships(shape).of(constants))
        for since, (shape, constants) in subscriptions.items()
    ]
    rows = {row["position"]: row for row in batch.to_pylist()}
    solutions = MatchSolutions(matches) if matches.num_rows else None
    found: Found = {}
    for group in group_matches(matches, wanted):
        shape, _ = subscriptions[group.since]
        for position, numbers in zip(group.positions, group.rows, strict=True):
            assert (group.since, position) not in found, "one match for each pair"
            found[group.since, position] = None
            if shape.solutions and isinstance(shape.query, Conjunction) and solutions is not None:
                document = expand_bindings(shape, rows[position], solutions.quads(numbers))
                found[group.since, position] = bag(document["results"]["bindings"])
    return found


def bag(rows: Sequence[Mapping[str, Mapping[str, str]]]) -> Counter[frozenset[tuple[str, str]]]:
    return Counter(frozenset((name, str(sorted(term.items()))) for name, term in row.items()) for row in rows)


def truth(text: str, event: Event) -> int:
    """How many solutions there are, by an engine that we did not write."""
    store = ox.Store()
    graph = ox.NamedNode(event.id)
    lines = "".join(" ".join(line.split("\t")) + " .\n" for line in event.text.split("\n"))
    for triple in ox.parse(lines, format=ox.RdfFormat.N_TRIPLES):
        store.add(ox.Quad(triple.subject, triple.predicate, triple.object))
        store.add(ox.Quad(triple.subject, triple.predicate, triple.object, graph))
    return sum(1 for _ in store.query(text))  # type: ignore[union-attr, misc]


def evaluator(changes: Sequence[RegistryChange]) -> Evaluator:
    made = Evaluator()
    made.apply(changes, 1_000_000)
    return made


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("kind", [Kind.BINDINGS, Kind.SIGNAL])
def test_both_tiers_find_what_pyoxigraph_finds(part: int, kind: Kind) -> None:
    @seed_of(part)
    @examples(30)
    @given(events, st.lists(queries, min_size=4, max_size=4))
    def answers(published: list[Event], texts: list[str]) -> None:
        changes = [each for at, text in enumerate(texts, 1) for each in registered(at, text, kind)]
        batch = entries({100 + at: each for at, each in enumerate(published)})
        found = [expanded(made(changes).match(batch), batch, changes) for made in (Matcher.from_changes, evaluator)]
        assert found[0] == found[1], texts
        expected = {
            (at, 100 + place): count
            for at, text in enumerate(texts, 1)
            for place, event in enumerate(published)
            if (count := truth(text, event))
        }
        assert found[0].keys() == expected.keys(), texts
        if kind is Kind.BINDINGS:
            counts = {pair: sum(solutions.values()) for pair, solutions in found[0].items()}  # type: ignore[attr-defined]
            assert counts == expected, texts

    answers()


def test_a_subscription_sees_what_lies_between_its_making_and_its_end() -> None:
    event = Event("http://example.org/event", "<http://example.org/a>\t<http://example.org/p>\t<http://example.org/b>")
    changes = [*registered(4, "SELECT * { ?s <http://example.org/p> ?o }"), ended(7, 4)]
    matcher = Matcher.from_changes(changes)
    batch = entries(dict.fromkeys((3, 4, 5, 6, 7, 8), event))
    assert list(expanded(matcher.match(batch), batch, changes)) == [(4, 5), (4, 6)]
    for later, rows in ((BATCH_EVENTS + 7, 1), (2 * BATCH_EVENTS + 8, 0)):
        assert matcher.match(entries({later: event})).num_rows == rows, "an earlier part of its batch may still need it"
    assert list(expanded(matcher.match(batch), batch, changes)) == [(4, 5), (4, 6)], "a replay finds it again"


def test_members_of_one_group_cost_one_row() -> None:
    event = Event("http://example.org/event", '<urn:s>\t<urn:v>\t"7"^^<http://www.w3.org/2001/XMLSchema#integer>')
    texts = [f"SELECT * {{ ?s <urn:v> ?v FILTER(?v > {limit}) }}" for limit in range(20)]
    changes = [each for at, text in enumerate(texts, 1) for each in registered(at, text, Kind.SIGNAL)]
    matcher = Matcher.from_changes(changes)
    batch = entries({100: event})
    found = matcher.match(batch)
    assert found.num_rows == 1
    assert expanded(found, batch, changes).keys() == {(at, 100) for at in range(1, 8)}


CROWDED = (
    "SELECT * {{ <urn:{a}> <urn:p> ?b . ?b <urn:q> <urn:{c}> }}",
    "SELECT * {{ ?x <urn:p> <urn:{a}> ; <urn:q> <urn:{c}> }}",
    "SELECT * {{ <urn:{a}> <urn:p> ?b . <urn:{c}> <urn:q> ?d }}",
    "SELECT * {{ ?x <urn:p> ?y FILTER(?y IN (<urn:{a}>, <urn:{c}>)) }}",
    'SELECT * {{ ?x <urn:name> ?y FILTER(STRSTARTS(?y, "{word}")) }}',
    'SELECT * {{ ?x <urn:p> ?y FILTER(STRSTARTS(STR(?y), "urn:{a}")) }}',
    'SELECT * {{ ?x <urn:name> ?y FILTER(STRENDS(?y, "{word}")) }}',
    'SELECT * {{ ?x <urn:p> ?y FILTER(STRENDS(STR(?y), "{a}")) }}',
)
WORDS = ("", "a", "abcd", "abcde", "abcdefgh", "abcdefghijklmnop", "abcdefghijklmnopqrs", "abcx", "abcdefgh" * 5)


@pytest.mark.parametrize("quads", [2, 8, 90])
@pytest.mark.parametrize("text", CROWDED)
def test_many_subscriptions_under_few_keys_are_all_found(text: str, quads: int) -> None:
    """More than a key of one quad is for; and events with more quads than pairs of them are tried."""
    random = Random(quads)
    texts = [text.format(a=random.randrange(4), c=random.randrange(4), word=random.choice(WORDS)) for _ in range(60)]
    changes = [each for at, text in enumerate(texts, 1) for each in registered(at, text)]
    batch = entries({100 + at: crowded(random, at, quads) for at in range(25)})
    found = [expanded(made(changes).match(batch), batch, changes) for made in (Matcher.from_changes, evaluator)]
    assert found[0] == found[1]
    assert found[0]


def crowded(random: Random, number: int, quads: int) -> Event:
    """An event of so many quads, fewer where one comes twice."""
    lines = [
        f"<urn:{random.randrange(4)}>\t<urn:{random.choice('pq')}>\t<urn:{random.randrange(4 + quads)}>"
        for _ in range(quads)
    ]
    named = f'<urn:x>\t<urn:name>\t"{random.choice(WORDS)}{random.choice(WORDS)}"'
    return Event(f"urn:event:{number}", "\n".join(dict.fromkeys([*lines, named])))
