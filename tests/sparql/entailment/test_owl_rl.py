"""OWL 2 RL inference: one consequence for each rule, and agreement with the RDFS tables."""

from __future__ import annotations

from random import Random

import pytest

from tests.matching.filters import generated
from tests.matching.filters.worlds import EX, event
from triplewire.model.errors import InputError
from triplewire.model.terms import RDF_TYPE
from triplewire.sparql.entailment import ontologies
from triplewire.sparql.entailment.ontologies import OWL, SUB_CLASS, build_ontology
from triplewire.sparql.entailment.owl_rl import compute_closure, infer_triples

Triple = tuple[str, str, str]

RULES = {
    "sub-classes": ("ex:a rdfs:subClassOf ex:b . ex:b rdfs:subClassOf ex:c . ex:x a ex:a .", "ex:x a ex:c"),
    "domain": ("ex:p rdfs:domain ex:c . ex:x ex:p ex:y .", "ex:x a ex:c"),
    "range": ("ex:p rdfs:range ex:c . ex:x ex:p ex:y .", "ex:y a ex:c"),
    "sub-properties": (
        "ex:p rdfs:subPropertyOf ex:q . ex:q rdfs:subPropertyOf ex:r . ex:x ex:p ex:y .",
        "ex:x ex:r ex:y",
    ),
    "domain of a super-property": (
        "ex:p rdfs:subPropertyOf ex:q . ex:q rdfs:domain ex:c . ex:x ex:p ex:y .",
        "ex:x a ex:c",
    ),
    "equivalent classes": ("ex:a owl:equivalentClass ex:b . ex:x a ex:a .", "ex:x a ex:b"),
    "equivalents of sub-classes": (
        "ex:a owl:equivalentClass ex:b . ex:c rdfs:subClassOf ex:a . ex:x a ex:c .",
        "ex:x a ex:b",
    ),
    "equivalent properties": ("ex:p owl:equivalentProperty ex:q . ex:x ex:q ex:y .", "ex:x ex:p ex:y"),
    "inverse": ("ex:p owl:inverseOf ex:q . ex:x ex:p ex:y .", "ex:y ex:q ex:x"),
    "transitive": ("ex:p a owl:TransitiveProperty . ex:x ex:p ex:y . ex:y ex:p ex:z .", "ex:x ex:p ex:z"),
    "symmetric": ("ex:p a owl:SymmetricProperty . ex:x ex:p ex:y .", "ex:y ex:p ex:x"),
    "functional": ("ex:p a owl:FunctionalProperty . ex:x ex:p ex:y, ex:z .", "ex:y owl:sameAs ex:z"),
    "same": ("ex:x owl:sameAs ex:y . ex:x a ex:c .", "ex:y a ex:c"),
    "intersection": ("ex:c owl:intersectionOf (ex:a ex:b) . ex:x a ex:a, ex:b .", "ex:x a ex:c"),
    "part of an intersection": ("ex:c owl:intersectionOf (ex:a ex:b) .", "ex:c rdfs:subClassOf ex:b"),
    "union": ("ex:c owl:unionOf (ex:a ex:b) .", "ex:b rdfs:subClassOf ex:c"),
    "enumeration": ("ex:c owl:oneOf (ex:x ex:y) .", "ex:y a ex:c"),
    "some values": (
        "ex:c owl:onProperty ex:p ; owl:someValuesFrom ex:d . ex:x ex:p ex:y . ex:y a ex:d .",
        "ex:x a ex:c",
    ),
    "all values": ("ex:c owl:onProperty ex:p ; owl:allValuesFrom ex:d . ex:x a ex:c ; ex:p ex:y .", "ex:y a ex:d"),
    "a value": ("ex:c owl:onProperty ex:p ; owl:hasValue ex:v . ex:x a ex:c .", "ex:x ex:p ex:v"),
    "chain": ("ex:p owl:propertyChainAxiom (ex:q ex:r) . ex:x ex:q ex:y . ex:y ex:r ex:z .", "ex:x ex:p ex:z"),
    "chain of chains": (
        "ex:p owl:propertyChainAxiom (ex:q ex:q) . ex:s owl:propertyChainAxiom (ex:p ex:q) . "
        "ex:w ex:q ex:x . ex:x ex:q ex:y . ex:y ex:q ex:z .",
        "ex:w ex:s ex:z",
    ),
    "literal": ('ex:p rdfs:subPropertyOf ex:q . ex:x ex:p "01"^^xsd:integer .', 'ex:x ex:q "01"^^xsd:integer'),
    "thing": ("ex:c a owl:Class .", "ex:c rdfs:subClassOf owl:Thing"),
}


def triples(turtle: str) -> list[Triple]:
    rows = [line.split("\t") for line in event(turtle).text.split("\n")]
    return [(subject, predicate, object_) for subject, predicate, object_ in rows]


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_followed(rule: str) -> None:
    given, wanted = RULES[rule]
    stated = triples(given)
    (expected,) = triples(f"{wanted} .")
    assert expected not in stated
    found = infer_triples(stated)
    assert expected in found
    assert set(stated) <= found


def test_nothing_follows_from_what_is_unconnected() -> None:
    found = infer_triples(triples("ex:a rdfs:subClassOf ex:b . ex:x a ex:b . ex:x ex:p ex:y ."))
    assert (f"<{EX}x>", RDF_TYPE, f"<{EX}a>") not in found
    assert (f"<{EX}y>", f"<{EX}p>", f"<{EX}x>") not in found


def test_terms_that_other_libraries_do_not_take_are_taken() -> None:
    odd = ("<http://example.org/ü?q={}>", f"<{EX}p>", '"a\\"b"@en')
    assert odd in infer_triples([odd, ("<urn:x>", SUB_CLASS, "<urn:y>")])


@pytest.mark.parametrize("seed", range(10))
def test_the_order_is_that_of_the_tables_for_queries(seed: int) -> None:
    stated = generated.ontology(Random(seed))
    ontology = build_ontology(stated)
    below = {(lower, upper) for relation, lower, upper in compute_closure(stated) if relation == "below"}
    told = {pair for pair in below if not any(OWL in name for name in pair)}
    assert told == ontology.sub_classes.pairs | ontology.sub_properties.pairs


@pytest.mark.parametrize("property_", ["rdfs:subClassOf", "rdfs:subPropertyOf", "ex:next", "owl:sameAs"])
def test_a_chain_too_long_to_be_closed_is_refused_before(property_: str) -> None:
    length = int((2 * ontologies.ONTOLOGY_PAIRS) ** 0.5) + 2
    links = " ".join(f"ex:n{at} {property_} ex:n{at + 1} ." for at in range(length))
    with pytest.raises(InputError, match="more than"):
        infer_triples(triples(f"ex:next a owl:TransitiveProperty . {links}"))


def test_the_rows_have_a_limit() -> None:
    with pytest.raises(InputError, match="over the limit of 3"):
        compute_closure(triples("ex:a rdfs:subClassOf ex:b . ex:b rdfs:subClassOf ex:c ."), limit=3)
