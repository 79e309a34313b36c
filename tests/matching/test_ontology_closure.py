"""Ontologies as a table that follows the registry."""

from __future__ import annotations

import duckdb
import pytest

from tests.matching.filters.worlds import EX, World, constraint, event, holds, loaded
from triplewire.matching.tables import OntologyClosure
from triplewire.sparql.entailment import ontologies
from triplewire.storage.registry.ontologies import NEWEST_ONTOLOGIES, ONTOLOGIES_VERSION, ONTOLOGY
from triplewire.storage.registry.ports import RegistryChange


def rows(duck: duckdb.DuckDBPyConnection, relation: str = "below") -> set[tuple[str, str]]:
    found = duck.execute("SELECT lower, upper FROM closure WHERE relation = ?", [relation]).fetchall()
    assert len(found) == len(set(found))
    return {(lower.removeprefix(f"<{EX}")[:-1], upper.removeprefix(f"<{EX}")[:-1]) for lower, upper in found}


@pytest.fixture
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def test_at_first_there_is_a_table_and_nothing_in_it(duck: duckdb.DuckDBPyConnection) -> None:
    closures = OntologyClosure(duck)
    assert not closures.prepare()
    assert rows(duck) == set()


def test_all_ontologies_are_one(duck: duckdb.DuckDBPyConnection) -> None:
    closures = OntologyClosure(duck)
    assert closures.apply(loaded("ex:a rdfs:subClassOf ex:b .", "one", 1))
    assert closures.apply(loaded("ex:b rdfs:subClassOf ex:c .", "two", 2))
    assert rows(duck) == set()
    assert closures.prepare()
    assert not closures.prepare()
    assert rows(duck) == rows(duck, "strictly") == {("a", "b"), ("b", "c"), ("a", "c")}


def test_one_that_is_loaded_again_takes_the_place_of_the_former(duck: duckdb.DuckDBPyConnection) -> None:
    closures = OntologyClosure(duck)
    closures.apply(loaded("ex:a rdfs:subClassOf ex:b .", "one", 1))
    closures.prepare()
    closures.apply(loaded("ex:a owl:equivalentClass ex:c .", "one", 2))
    closures.prepare()
    assert rows(duck) == rows(duck, "equivalent") == {("a", "c"), ("c", "a")}
    assert rows(duck, "strictly") == set()
    closures.apply(RegistryChange(3, ONTOLOGY, "one", None))
    closures.prepare()
    assert rows(duck) == set()


def test_other_changes_do_not_concern_it(duck: duckdb.DuckDBPyConnection) -> None:
    closures = OntologyClosure(duck)
    assert not closures.apply(RegistryChange(1, ONTOLOGIES_VERSION, NEWEST_ONTOLOGIES, {}))
    assert not closures.apply(RegistryChange(2, "stream", "one", {}))
    assert not closures.prepare()


def test_individuals_have_classes_and_facts(duck: duckdb.DuckDBPyConnection) -> None:
    closures = OntologyClosure(duck)
    closures.apply(
        loaded('ex:p rdfs:subPropertyOf ex:q ; rdfs:label "p" . ex:x a ex:c ; ex:p ex:y, ex:z . ex:y owl:sameAs ex:w .')
    )
    closures.prepare()
    assert ("x", "c") in rows(duck, "is_a")
    assert rows(duck, f"<{EX}q>") == rows(duck, f"<{EX}p>") == {("x", "y"), ("x", "z"), ("x", "w")}
    assert rows(duck, "equivalent") == {("y", "w"), ("w", "y")}
    assert rows(duck, "<http://www.w3.org/2000/01/rdf-schema#label>") == set()


def test_what_is_too_much_is_left_out_from_the_newest_on(
    duck: duckdb.DuckDBPyConnection, caplog: pytest.LogCaptureFixture
) -> None:
    length = int((2 * ontologies.ONTOLOGY_PAIRS) ** 0.5) + 2
    chain = " ".join(f"ex:c{each} rdfs:subClassOf ex:c{each + 1} ." for each in range(length))
    closures = OntologyClosure(duck)
    closures.apply(loaded(chain, "large", 2))
    closures.apply(loaded("ex:a rdfs:subClassOf ex:b .", "small", 1))
    closures.prepare()
    assert rows(duck) == {("a", "b")}
    assert "the ontology large is left out" in caplog.text


def test_a_filter_follows_the_ontology_as_it_is() -> None:
    world = World([event("ex:e ex:about ex:a .")], [loaded("ex:a rdfs:subClassOf ex:b .")])
    assert holds(world, constraint("ex:about", "@>", "ex:b"))
    world.closures.apply(loaded("ex:a rdfs:subClassOf ex:c .", position=2))
    world.closures.prepare()
    assert not holds(world, constraint("ex:about", "@>", "ex:b"))
    assert holds(world, constraint("ex:about", "@>", "ex:c"))
