"""Subscriptions that follow ontologies: from the position of a change on they go by its new version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.http.harness import House, data, run
from tests.http.resources.test_routes import call, controlled
from triplewire.http.resources.ontologies import OntologyManager, SubscriptionEntailment
from triplewire.http.resources.subscription_requests import SubscriptionRequest
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.matching.evaluator import Evaluator
from triplewire.model import Event, Subscription, format_position
from triplewire.model.errors import Conflict, InvalidField
from triplewire.model.terms import RDF_TYPE
from triplewire.rdf import TURTLE
from triplewire.sparql.entailment.rewriting import ENTAILMENT_ROWS
from triplewire.storage.log.ports import Publication
from triplewire.storage.registry.subscriptions import ENTAILED, SUBSCRIPTION, read_versions, subscription_from_change
from triplewire.testing import TWIN_KINDS, Twin, open_twin

PREFIX = "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix : <urn:> .\n"
ANIMALS = {"sparql": "SELECT ?s { ?s a <urn:Animal> }", "kind": "bindings", "entailment": "rdfs"}


def ontology(text: str) -> bytes:
    return (PREFIX + text).encode()


@pytest.fixture(params=TWIN_KINDS)
def stores(request: pytest.FixtureRequest) -> Iterator[Twin]:
    with open_twin(request.param) as made:
        yield made


def publish(stores: Twin, *classes: str) -> None:
    for name in classes:
        events = [Event(f"urn:event:{stores.log.head()}", f"<urn:s>\t{RDF_TYPE}\t<urn:{name}>")]
        stores.log.append([Publication("test", events)])


def told(stores: Twin, *ids: str) -> list[tuple[str, str]]:
    """What is notified, event by event: the class, and the subscription."""
    head = stores.log.head()
    evaluator = Evaluator()
    evaluator.apply(stores.registry.changes(0, head), head)
    entries = stores.log.read(0, head, 1_000)
    named = {
        each.since: each.id
        for id in ids
        if (change := stores.registry.get(SUBSCRIPTION, id))
        for each in read_versions(stores.registry, subscription_from_change(change))
    }
    texts = dict(zip(entries["position"].to_pylist(), entries["text"].to_pylist(), strict=True))
    found = evaluator.match(entries)
    pairs = zip(found["position"].to_pylist(), found["subscription"].to_pylist(), strict=True)
    return [(texts[at].rpartition("urn:")[2][:-1], named[since]) for at, since in pairs]


def made(stores: Twin, *wishes: dict[str, str]) -> Sequence[Subscription]:
    service = SubscriptionManager(stores.registry, stores.clock)
    return service.register([SubscriptionRequest.from_json(each) for each in wishes])


def test_it_follows_every_version_from_its_position_on_and_tells_each_event_once(stores: Twin) -> None:
    ontologies = OntologyManager(stores.registry)
    (one,) = made(stores, ANIMALS)
    publish(stores, "Dog", "Animal")
    ontologies.load("zoo", ontology(":Dog rdfs:subClassOf :Animal ."), TURTLE)
    publish(stores, "Dog", "Cat", "Animal")
    ontologies.load("zoo", ontology(":Cat rdfs:subClassOf :Animal ."), TURTLE)
    publish(stores, "Dog", "Cat")
    ontologies.load("more", ontology(":Dog rdfs:subClassOf :Cat ."), TURTLE)
    publish(stores, "Dog")
    ontologies.remove("zoo")
    publish(stores, "Dog", "Cat", "Animal")
    assert told(stores, one.id) == [(name, one.id) for name in ("Animal", "Dog", "Animal", "Cat", "Dog", "Animal")]


def test_its_id_and_where_it_was_made_stay(stores: Twin) -> None:
    service, ontologies = SubscriptionManager(stores.registry, stores.clock), OntologyManager(stores.registry)
    (one,) = made(stores, ANIMALS)
    loaded = ontologies.load("zoo", ontology(":Dog rdfs:subClassOf :Animal ."), TURTLE)
    found = service.find(one.id)
    assert (found.made, found.earlier, found.created) == (one.since, (one.since,), one.created)
    assert found.since > loaded.version
    assert found.shape != one.shape
    assert len(stores.registry.list(SUBSCRIPTION)) == 1


def test_those_that_do_not_follow_and_changes_that_do_not_concern_make_no_version(stores: Twin) -> None:
    ontologies = OntologyManager(stores.registry)
    one, other = made(stores, ANIMALS, {**ANIMALS, "entailment": None})  # type: ignore[dict-item]
    ontologies.load("zoo", ontology(":Oak rdfs:subClassOf :Tree ."), TURTLE)
    ontologies.load("zoo", ontology(":Dog rdfs:subClassOf :Animal ."), TURTLE)
    publish(stores, "Dog")
    assert told(stores, one.id, other.id) == [("Dog", one.id)]
    assert [change.key for change in stores.registry.list(ENTAILED)] == [one.id]
    found = SubscriptionManager(stores.registry, stores.clock).find(one.id)
    assert len(found.earlier) == 1


def test_all_goes_in_one_transaction() -> None:
    with open_twin("memory") as stores:
        made(stores, ANIMALS)
        before = stores.log.head()
        loaded = OntologyManager(stores.registry).load("zoo", ontology(":Dog rdfs:subClassOf :Animal ."), TURTLE)
        kinds = [change.kind for change in stores.registry.changes(before, stores.log.head())]
        assert kinds == ["ontologies", "ontology", "shape", "subscription"]
        assert loaded.version == before + 2


def test_one_that_was_lifted_by_an_older_version_is_brought_up_to_date() -> None:
    """As when somebody else loads an ontology between the lifting of a subscription and its registration."""
    with open_twin("memory") as stores:
        (one,) = made(stores, ANIMALS)
        (change,) = stores.registry.list(SUBSCRIPTION)
        OntologyManager(stores.registry).load("zoo", ontology(":Dog rdfs:subClassOf :Animal ."), TURTLE)
        stores.registry.put([(SUBSCRIPTION, one.id, change.value)])
        SubscriptionEntailment(stores.registry).settle()
        publish(stores, "Dog")
        head = stores.log.head()
        evaluator = Evaluator()
        evaluator.apply(stores.registry.changes(0, head), head)
        assert evaluator.match(stores.log.read(0, head, 10)).num_rows == 1


def test_an_ended_one_follows_no_more(stores: Twin) -> None:
    service = SubscriptionManager(stores.registry, stores.clock)
    (one,) = made(stores, ANIMALS)
    service.end(one.id)
    OntologyManager(stores.registry).load("zoo", ontology(":Dog rdfs:subClassOf :Animal ."), TURTLE)
    assert stores.registry.list(SUBSCRIPTION) == []
    assert stores.registry.list(ENTAILED) == []


def test_what_meets_too_much_of_an_ontology_is_refused_whichever_comes_first() -> None:
    small = ontology(":Dog rdfs:subClassOf :Animal .")
    large = ontology("".join(f":c{number} rdfs:subClassOf :Animal ." for number in range(ENTAILMENT_ROWS + 1)))
    with open_twin("memory") as stores:
        ontologies = OntologyManager(stores.registry)
        ontologies.load("zoo", small, TURTLE)
        (one,) = made(stores, ANIMALS)
        with pytest.raises(Conflict, match=one.id):
            ontologies.load("zoo", large, TURTLE)
        assert ontologies.find("zoo").triples == 1
        SubscriptionManager(stores.registry, stores.clock).end(one.id)
        ontologies.load("zoo", large, TURTLE)
        with pytest.raises(InvalidField) as raised:
            made(stores, ANIMALS)
        assert raised.value.field == "entailment"


def test_what_narrows_is_not_entailed(stores: Twin) -> None:
    OntologyManager(stores.registry).load("zoo", ontology(":Dog rdfs:subClassOf :Animal ."), TURTLE)
    narrow = {**ANIMALS, "vocabulary": "http://www.w3.org/2000/01/rdf-schema#"}
    one, other = made(stores, narrow, {**ANIMALS, "vocabulary": "urn:Dog"})
    publish(stores, "Dog", "Animal")
    assert told(stores, one.id, other.id) == [("Dog", other.id)]


async def load(at: House, text: str) -> None:
    sent = {"Content-Type": "text/turtle"}
    await call(at, "PUT", "/ontologies/zoo", 200, data=ontology(text), headers=sent)


def newest(at: House, id: str) -> int:
    change = at.twin.registry.get(SUBSCRIPTION, id)
    assert change is not None
    return change.position


def test_who_listens_hears_all_versions_and_so_does_who_comes_later() -> None:
    async def scene() -> None:
        async with controlled() as at:
            found = await call(at, "POST", "/subscriptions", 201, json={**ANIMALS, "kind": "signal"})
            id, first = found["id"], newest(at, found["id"])
            (one,) = at.append(1)
            async with at.listen(found["notifications"]) as early:
                at.match([(one, first, None)])
                assert (await early.next()).id == format_position(one)
                await load(at, ":Dog rdfs:subClassOf :Animal .")
                second = newest(at, id)
                two, three = at.append(2, 3)
                await load(at, ":Cat rdfs:subClassOf :Animal .")
                third = newest(at, id)
                (four,) = at.append(4)
                assert first < one < second < two < third < four
                at.match([(two, second, None), (three, second, None), (four, third, None)])
                heard = await early.take(3)
                assert [message.id for message in heard] == [
                    format_position(two),
                    format_position(three),
                    format_position(four),
                ]
                assert {data(message)["subscription"] for message in heard} == {id}
            async with at.listen(found["notifications"]) as late:
                heard = await late.take(4)
                assert [message.id for message in heard] == [format_position(each) for each in (one, two, three, four)]
                shown = await call(at, "GET", f"/subscriptions/{id}", 200)
                assert (shown["since"], shown["entailment"]) == (found["since"], "rdfs")
                await call(at, "DELETE", f"/subscriptions/{id}", 204)
                assert (await late.next()).event == "end"

    run(scene())


def test_what_was_learned_of_names_that_nobody_knows_is_not_taken_for_those_of_an_ontology(stores: Twin) -> None:
    ontologies = OntologyManager(stores.registry)
    ontologies.load("zoo", ontology(":Dog rdfs:subClassOf :Animal ."), TURTLE)
    subscriptions = SubscriptionManager(stores.registry, stores.clock)
    texts = [
        f"PREFIX ex: <urn:> ASK {{ ?s a {name} }}" for name in ("ex:Car", "ex:Animal", "<urn:Cat>", "<urn:Animal>")
    ]
    made = subscriptions.register(
        [SubscriptionRequest.from_json({"sparql": text, "entailment": "rdfs"}) for text in texts]
    )
    publish(stores, "Dog", "Car", "Cat")
    wanted = [("Dog", made[1].id), ("Dog", made[3].id), ("Car", made[0].id), ("Cat", made[2].id)]
    assert told(stores, *(each.id for each in made)) == wanted
