"""Tables of ontologies against the RDFS rules; merging ontologies equals building one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sparql.entailment.rdfs_oracle import DOMAIN, RANGE, RDF_TYPE, SUB_CLASS, SUB_PROPERTY, Triple, closed_schema
from triplewire.model.errors import InputError
from triplewire.sparql.entailment import ontologies
from triplewire.sparql.entailment.ontologies import OWL, RDFS, Ontology, build_ontology

A, B, C, P, Q = (f"<urn:{name}>" for name in "ABCpq")

names = st.sampled_from([A, B, C, P, Q])
schemas = st.frozensets(st.tuples(names, st.sampled_from([SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE]), names), max_size=7)


@given(schemas)
def test_the_facts_are_what_the_rules_give(schema: frozenset[Triple]) -> None:
    assert build_ontology(schema).facts == closed_schema(schema)


def test_nothing_says_nothing() -> None:
    assert not build_ontology([])
    assert build_ontology([]) == Ontology()


def test_names_on_a_cycle_are_below_one_another() -> None:
    order = build_ontology([(A, SUB_CLASS, B), (B, SUB_CLASS, C), (C, SUB_CLASS, A)]).sub_classes
    assert order.below(A) == order.above(A) == order.below(C) == {A, B, C}


def test_a_name_that_nobody_stated_is_below_itself_alone() -> None:
    order = build_ontology([(A, SUB_CLASS, B)]).sub_classes
    assert order.below(C) == order.above(C) == {C}


def test_domain_and_range_are_inherited_down_by_properties_and_up_by_classes() -> None:
    ontology = build_ontology([(P, SUB_PROPERTY, Q), (A, SUB_CLASS, B), (Q, DOMAIN, A), (P, RANGE, A)])
    assert ontology.domains.pairs == {(P, A), (P, B), (Q, A), (Q, B)}
    assert ontology.ranges.pairs == {(P, A), (P, B)}
    assert ontology.domains.under(B) == {P, Q}


def test_what_is_equivalent_is_below_one_another() -> None:
    ontology = build_ontology([(A, f"<{OWL}equivalentClass>", B), (P, f"<{OWL}equivalentProperty>", Q)])
    assert ontology.sub_classes.pairs == {(A, B), (B, A)}
    assert ontology.sub_properties.pairs == {(P, Q), (Q, P)}


def test_sub_properties_of_the_vocabulary_speak_for_it() -> None:
    under, over = "<urn:under>", "<urn:over>"
    given = [(under, SUB_PROPERTY, SUB_PROPERTY), (over, under, SUB_CLASS), (A, over, B)]
    assert build_ontology(given).sub_classes.pairs == {(A, B)}


def test_classes_and_properties_are_known_by_what_is_said_of_them() -> None:
    ontology = build_ontology([(A, RDF_TYPE, f"<{OWL}Class>"), (P, RANGE, B), (A, f"<{RDFS}label>", '"a"'), (A, P, C)])
    assert ontology.classes == {A, B}
    assert ontology.properties == {P}
    assert ontology.schema == {(P, RANGE, B)}


def test_a_literal_is_no_class() -> None:
    assert not build_ontology([(A, SUB_CLASS, '"B"'), (P, f"<{OWL}equivalentProperty>", '"Q"')])


def test_tables_that_grow_too_large_are_refused() -> None:
    deep = [(f"<urn:{n}>", SUB_CLASS, f"<urn:{n + 1}>") for n in range(1_000)]
    with pytest.raises(InputError, match=str(ontologies.ONTOLOGY_PAIRS)):
        build_ontology(deep)
