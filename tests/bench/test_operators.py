"""`bench operators`: its examples hold in its ontology, by an engine that we did not write."""

from __future__ import annotations

from itertools import permutations

import pyoxigraph as ox
import pytest

from bench.harness import Disagreement
from bench.operators import (
    EXAMPLES,
    SIZES,
    TABLE_15,
    OperatorExample,
    check_matches,
    iri_of,
    make_changes,
    read_ontology,
    read_thesis,
)
from triplewire.matching.filters import document_query
from triplewire.matching.shapes import lift
from triplewire.storage.registry.subscriptions import subscription_from_change

PREFIXES = """PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> PREFIX owl: <http://www.w3.org/2002/07/owl#>
"""
RELATIONS = {
    "=": "FILTER({p} = {v})",
    "@> strict": "{p} rdfs:subClassOf+ {v}",
    "@< strict": "{v} rdfs:subClassOf+ {p}",
    "@>": "{p} rdfs:subClassOf* {v}",
    "@<": "{v} rdfs:subClassOf* {p}",
    "@~": "{p} (owl:equivalentClass|^owl:equivalentClass)* {v}",
    "@=": "{p} rdf:type/rdfs:subClassOf* {v}",
}


@pytest.fixture(scope="module")
def store() -> ox.Store:
    found = ox.Store()
    triples = "".join(f"{line} .\n" for line in read_ontology().split("\n"))
    found.extend(ox.parse(triples.encode(), format=ox.RdfFormat.N_TRIPLES))
    return found


def holds(store: ox.Store, operator: str, published: str, wanted: str) -> bool:
    negated = operator.replace("!", "")
    pattern = RELATIONS[negated].format(p=iri_of(published), v=iri_of(wanted))
    answer = bool(store.query(f"{PREFIXES} ASK {{ {pattern} }}"))
    return answer != (negated != operator)


def accepts(store: ox.Store, example: OperatorExample, published: tuple[str, ...]) -> bool:
    operand = (example.operand,) if isinstance(example.operand, str) else tuple(example.operand)
    bag, _, relation = example.name.partition("/")
    relation = relation or "="
    if not bag.startswith("#"):
        return any(holds(store, bag, each, operand[0]) for each in published)
    if len(published) != len(operand) and bag == "#=":
        return False
    fewer = min(len(published), len(operand)) == (len(published) if bag == "#<" else len(operand))
    if bag != "#=" and not fewer:
        return False
    if bag == "#<":
        return any(
            all(holds(store, relation, p, v) for p, v in zip(published, chosen, strict=True))
            for chosen in permutations(operand, len(published))
        )
    return any(
        all(holds(store, relation, p, v) for p, v in zip(chosen, operand, strict=True))
        for chosen in permutations(published, len(operand))
    )


@pytest.mark.parametrize("example", [each for each in EXAMPLES if each.operator != "@*"], ids=lambda each: each.name)
def test_an_example_accepts_what_it_should(store: ox.Store, example: OperatorExample) -> None:
    assert accepts(store, example, tuple(example.accepted))
    assert not accepts(store, example, tuple(example.refused))


def test_the_property_is_that_of_one_individual(store: ox.Store) -> None:
    (example,) = [each for each in EXAMPLES if each.operator == "@*"]
    predicate, value = map(iri_of, example.operand)
    holders = [str(each["s"]) for each in store.query(f"SELECT ?s {{ ?s {predicate} {value} }}")]  # type: ignore[union-attr]
    assert holders == [iri_of(each) for each in example.accepted]


def test_every_operator_of_the_thesis_is_measured() -> None:
    assert {each.symbol for each in EXAMPLES} == set(TABLE_15)
    assert len(TABLE_15) == 10
    assert len({each.name for each in EXAMPLES}) == len(EXAMPLES) == 15
    assert {each.symbol for each in EXAMPLES if each.strict} == {"@>", "@<"}


def test_the_table_is_that_of_the_thesis() -> None:
    last = [mean for symbol in TABLE_15 if (mean := read_thesis(symbol, 3_000)) is not None]
    assert (min(last), max(last)) == (16.96, 4349.53)
    assert [row["name"] for symbol, row in TABLE_15.items() if read_thesis(symbol, 2_000) is None] == ["Ont Prop"]
    assert all(len(row["figures"]) == len(SIZES) for row in TABLE_15.values())
    assert read_thesis("@>", 100_000) is None


def test_filters_and_events_of_one_number_belong_together() -> None:
    for example in EXAMPLES:
        (_, number) = example.make_filter(7)["filter"]
        assert (number["op"], number["value"]) == ("=", 7)
        assert '"7"^^' in example.write_event(7)
        assert len(example.write_event(7).split("\n")) == len(example.accepted) + 1
        assert example.write_event(7) != example.write_event(7, refused=True)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.name)
def test_subscriptions_are_what_their_filters_say(example: OperatorExample) -> None:
    told, shape, *made = make_changes(example, 20)
    assert (told.kind, shape.kind) == ("ontology", "shape")
    assert [each.position for each in made] == list(range(3, 23))
    lifted = lift(document_query(example.make_filter(7)), solutions=False)
    seventh = subscription_from_change(made[7])
    assert (seventh.shape, seventh.constants) == (lifted.shape.key, lifted.constants)
    assert shape.key == lifted.shape.key


def test_a_match_too_few_is_told() -> None:
    check_matches("@>", 300, 300)
    with pytest.raises(Disagreement, match="@>: 299 matches, not 300"):
        check_matches("@>", 299, 300)
