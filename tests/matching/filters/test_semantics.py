"""Semantics: SQL against the reference, and content operators against an engine that we did not write."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.matching.filters import generated, reference
from tests.matching.filters.worlds import Document, World
from triplewire.matching.filters import Constraint, parse_filters
from triplewire.storage.registry.ontologies import ONTOLOGY
from triplewire.storage.registry.ports import RegistryChange


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32))
def test_sql_says_what_the_reference_says(seed: int) -> None:
    random = Random(seed)
    triples = generated.ontology(random)
    text = "\n".join("\t".join(each) for each in sorted(triples))
    loaded = RegistryChange(1, ONTOLOGY, "drawn", {"text": text, "triples": 0, "classes": 0, "properties": 0})
    events = [generated.event(random, at) for at in range(12)]
    documents = [generated.document(random) for _ in range(10)]
    found = World(events, [loaded]).matches(documents)
    for at, event in enumerate(events):
        for number, document in enumerate(documents):
            wanted = reference.holds(parse_filters(document), event, reference.Knowledge(triples))
            assert ((at, number) in found) is wanted, (event.text, document, text)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32))
def test_content_operators_are_those_of_sparql(seed: int) -> None:
    random = Random(seed)
    events = [generated.event(random, at) for at in range(12)]
    documents = [generated.content(random) for _ in range(12)]
    found = World(events).matches(documents)
    for at, event in enumerate(events):
        for number, document in enumerate(documents):
            assert ((at, number) in found) is oracle.matches(event, sparql(document)), (event.text, document)


def sparql(document: Document) -> str:
    (filter_,) = parse_filters(document)
    return f"SELECT * {{ {' '.join(_pattern(each, at) for at, each in enumerate(filter_.constraints))} }}"


def _pattern(constraint: Constraint, at: int) -> str:
    ((term,),) = constraint.operands
    names = {">*": "STRSTARTS", "*<": "STRENDS", "*": "CONTAINS"}
    op = constraint.relation.symbol
    condition = f"{names[op]}(?o{at}, {term})" if op in names else f"?o{at} {op} {term}"
    return f"?s{at} {constraint.attribute} ?o{at} . FILTER({condition})"
