"""Ontologies: loaded, replaced, listed, given back and removed, over sockets and without."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pyoxigraph as ox
import pytest

from tests.http.harness import run
from tests.http.resources.test_routes import call, controlled
from triplewire.http.resources.ontologies import ONTOLOGY_BYTES, ONTOLOGY_TRIPLES, OntologyManager, format_ontology
from triplewire.model import format_position
from triplewire.model.errors import BadRequest, InputError, MalformedRdf, NotFound
from triplewire.model.events import STREAM_NAME_CHARACTERS
from triplewire.rdf import N_QUADS, SYNTAXES, TRIG, TURTLE, Syntax
from triplewire.sparql.entailment import ontologies
from triplewire.storage.registry.ontologies import NEWEST_ONTOLOGIES, ONTOLOGIES_VERSION
from triplewire.testing import TWIN_KINDS, open_twin

PREFIX = "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix : <urn:> .\n"
SMALL = (PREFIX + ":A rdfs:subClassOf :B . :p rdfs:domain :A ; rdfs:label 'p'@en .").encode()
SENT = {"Content-Type": "text/turtle"}


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_what_is_loaded_is_found_and_counted(kind: str) -> None:
    with open_twin(kind) as stores:
        ontologies = OntologyManager(stores.registry)
        loaded = ontologies.load("small", SMALL, TURTLE)
        assert (loaded.triples, loaded.classes, loaded.properties) == (3, 2, 1)
        assert ontologies.find("small") == loaded
        assert ontologies.all() == [loaded]


def test_loading_again_replaces_under_a_later_version() -> None:
    with open_twin("memory") as stores:
        ontologies = OntologyManager(stores.registry)
        first, other = ontologies.load("a", SMALL, TURTLE), ontologies.load("b", SMALL, TURTLE)
        second = ontologies.load("a", b"<urn:p> <urn:q> <urn:r> .", TURTLE)
        assert first.version < other.version < second.version
        assert ontologies.all() == [other, second]
        assert (second.triples, second.classes, second.properties) == (1, 0, 0)


def test_every_change_is_told_by_one_position() -> None:
    with open_twin("memory") as stores:
        ontologies, seen = OntologyManager(stores.registry), list[int]()
        for change in (lambda: ontologies.load("a", SMALL, TURTLE), lambda: ontologies.remove("a")):
            change()
            newest = stores.registry.get(ONTOLOGIES_VERSION, NEWEST_ONTOLOGIES)
            assert newest is not None
            seen.append(newest.position)
        assert seen == sorted(set(seen))


def test_the_graphs_of_a_body_are_one_ontology() -> None:
    with open_twin("memory") as stores:
        body = b"<urn:g> { <urn:a> <urn:p> <urn:b> } <urn:h> { <urn:a> <urn:p> <urn:b>, <urn:c> } <urn:d> a <urn:c> ."
        assert OntologyManager(stores.registry).load("a", body, TRIG).triples == 3


def test_blank_nodes_become_iris() -> None:
    with open_twin("memory") as stores:
        body = (PREFIX + ":A rdfs:subClassOf [ :p _:x ] .").encode()
        loaded = OntologyManager(stores.registry).load("a", body, TURTLE)
        assert "_:" not in loaded.text
        assert (loaded.triples, loaded.classes) == (2, 2)


@pytest.mark.parametrize("name", ["", ".a", "a b", "ä", "a" * (STREAM_NAME_CHARACTERS + 1)])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with open_twin("memory") as stores, pytest.raises(BadRequest, match="name"):
        OntologyManager(stores.registry).load(name, SMALL, TURTLE)


@pytest.mark.parametrize("body", [b"", b"<urn:a> <urn:b> ."])
def test_what_is_no_rdf_leaves_what_was_there(body: bytes) -> None:
    with open_twin("memory") as stores:
        ontologies = OntologyManager(stores.registry)
        loaded = ontologies.load("a", SMALL, TURTLE)
        with pytest.raises(MalformedRdf):
            ontologies.load("a", body, TURTLE)
        assert ontologies.all() == [loaded]


def test_an_ontology_that_is_too_deep_is_refused() -> None:
    deep = PREFIX + "".join(f":c{n} rdfs:subClassOf :c{n + 1} .\n" for n in range(1_000))
    with open_twin("memory") as stores:
        with pytest.raises(InputError, match=str(ontologies.ONTOLOGY_PAIRS)):
            OntologyManager(stores.registry).load("a", deep.encode(), TURTLE)
        assert stores.log.head() == 0


def test_too_many_triples_are_refused() -> None:
    graph = "<urn:s> <urn:p> <urn:o{0}> <urn:g{1}> .\n"
    half = ONTOLOGY_TRIPLES // 2 + 1
    body = "".join(graph.format(n, n // half) for n in range(ONTOLOGY_TRIPLES + 1))
    with open_twin("memory") as stores, pytest.raises(InputError, match="over the limit"):
        OntologyManager(stores.registry).load("a", body.encode(), N_QUADS)


@pytest.mark.parametrize("syntax", SYNTAXES, ids=lambda each: each.name)
def test_what_is_written_is_what_was_loaded(syntax: Syntax) -> None:
    with open_twin("memory") as stores:
        body = format_ontology(OntologyManager(stores.registry).load("a", SMALL, TURTLE), syntax)
    assert set(ox.parse(body, format=syntax.format)) == set(ox.parse(SMALL, format=TURTLE.format))


def test_one_that_is_not_there_is_not_found() -> None:
    with open_twin("memory") as stores:
        for verb in (OntologyManager(stores.registry).find, OntologyManager(stores.registry).remove):
            with pytest.raises(NotFound, match="none-such"):
                verb("none-such")


def test_over_http_it_is_put_listed_given_back_and_deleted() -> None:
    async def scene() -> None:
        async with controlled() as at:
            told = await call(at, "PUT", "/ontologies/small", 200, data=SMALL, headers=SENT)
            assert told == {"name": "small", "version": format_position(2), "triples": 3, "classes": 2, "properties": 1}
            assert await call(at, "GET", "/ontologies", 200) == {"ontologies": [told]}
            for accept, syntax in ((None, "text/turtle"), ("application/n-triples", "application/n-triples")):
                headers = {"Accept": accept} if accept else {}
                async with at.session.get(at.url + "/ontologies/small", headers=headers) as response:
                    assert (response.status, response.content_type) == (200, syntax)
                    assert b"subClassOf" in await response.read()
            await call(at, "DELETE", "/ontologies/small", 204)
            assert await call(at, "GET", "/ontologies", 200) == {"ontologies": []}
            for method in ("GET", "DELETE"):
                assert (await at.problem(method, "/ontologies/small"))["status"] == 404

    run(scene())


@pytest.mark.parametrize(
    ("name", "options", "status", "extras"),
    [
        ("a", {"data": b"<urn:a> <urn:b> .", "headers": SENT}, 400, {"line"}),
        ("a b", {"data": SMALL, "headers": SENT}, 400, set()),
        ("a", {"data": SMALL, "headers": {"Content-Type": "text/plain"}}, 415, {"known"}),
        ("a", {"data": BytesIO(b"#" * (ONTOLOGY_BYTES + 1)), "headers": SENT}, 413, {"limit"}),
    ],
)
def test_over_http_what_cannot_be_is_refused(name: str, options: dict[str, Any], status: int, extras: set[str]) -> None:
    async def scene() -> None:
        async with controlled() as at:
            found = await at.problem("PUT", f"/ontologies/{name}", **options)
            assert found["status"] == status
            assert extras <= set(found)
            assert at.twin.log.head() == 0

    run(scene())


def test_over_http_a_syntax_that_nobody_writes_is_not_acceptable() -> None:
    async def scene() -> None:
        async with controlled() as at:
            await call(at, "PUT", "/ontologies/a", 200, data=SMALL, headers=SENT)
            found = await at.problem("GET", "/ontologies/a", headers={"Accept": "image/png"})
            assert (found["status"], "text/turtle" in found["known"]) == (406, True)

    run(scene())
