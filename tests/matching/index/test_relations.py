"""Relations: what the index finds by ontologies is what the reference says."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.matching.filters import generated, reference
from tests.matching.filters.worlds import EX, Document, constraint
from tests.matching.index.test_matcher import expanded
from tests.matching.test_evaluator import entries
from triplewire.matching.filters import document_query, parse_filters
from triplewire.matching.index import Memberships
from triplewire.matching.matcher import Matcher
from triplewire.matching.shapes import LiftedShape, lift
from triplewire.model import Event, Kind, Subscription
from triplewire.storage.registry.ontologies import ONTOLOGY
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

DECIDED = ("@>", "@<", "@~", "@!~", "@=", "@!=")


def lifted(document: Document) -> LiftedShape:
    return lift(document_query({"prefixes": {"ex": EX}, **document}), solutions=False)


def made(position: int, document: Document) -> list[RegistryChange]:
    its = lifted(document)
    subscription = Subscription(str(position), "", Kind.SIGNAL, its.shape.key, its.constants)
    return [
        RegistryChange(position, SHAPE, its.shape.key, its.shape.to_value()),
        RegistryChange(position, SUBSCRIPTION, subscription.id, subscription_to_value(subscription)),
    ]


def drawn_document(random: Random) -> Document:
    return {"filter": [_drawn_constraint(random) for _ in range(random.randint(1, 2))]}


def _drawn_constraint(random: Random) -> dict[str, object]:
    op = random.choice(DECIDED)
    strict = {"strict": True} if op in ("@>", "@<") and random.random() < 0.5 else {}
    attribute, name = random.choice(generated.ATTRIBUTES), random.choice(generated.NAMES)
    return constraint(attribute[1:-1], op, name[1:-1], **strict)


def loaded(position: int, triples: frozenset[tuple[str, str, str]]) -> RegistryChange:
    text = "\n".join("\t".join(each) for each in sorted(triples))
    return RegistryChange(position, ONTOLOGY, "drawn", {"text": text, "triples": 0, "classes": 0, "properties": 0})


@pytest.mark.parametrize("op", DECIDED)
def test_the_index_decides(op: str) -> None:
    assert Memberships(lifted({"filter": [constraint("ex:p", op, "ex:A")]}).shape).program is not None


@settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**32))
def test_what_the_reference_says(seed: int) -> None:
    random = Random(seed)
    documents = [drawn_document(random) for _ in range(30)]
    changes = [change for at, document in enumerate(documents) for change in made(10 + at, document)]
    ontologies = {version: frozenset(generated.ontology(random)) for version in (100, 200)}
    matcher = Matcher.from_changes([*changes, *(loaded(version, triples) for version, triples in ontologies.items())])
    for version, triples in ontologies.items():
        # The second ontology replaces the first.
        events = [generated.event(random, at) for at in range(12)]
        found = _found(matcher, events, changes, version)
        wanted = {
            (10 + number, version + 1 + at)
            for at, event in enumerate(events)
            for number, document in enumerate(documents)
            if reference.holds(parse_filters(document), event, reference.Knowledge(triples))
        }
        assert found == wanted


def _found(matcher: Matcher, events: list[Event], changes: list[RegistryChange], version: int) -> set[tuple[int, int]]:
    batch = entries(dict(enumerate(events, version + 1)))
    return set(expanded(matcher.match(batch), batch, changes))
