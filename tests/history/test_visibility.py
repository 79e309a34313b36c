"""Queries under a policy: the answer to any is that over the data which the policy lets through.

The rules are worked out by the book in `policed`, the answers by an engine that we did not write. And what is hidden
leaves no trace: over data that differ only in that, answers and explanations are the same byte by byte.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pyoxigraph as ox
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.history.policed import Occurrence, Shelved, World, snapshot, worlds
from triplewire.history.duckdb import DuckDbEngine
from triplewire.history.executor import HistoryExecutor, OntologyTables, QueryCompiler
from triplewire.history.requests import HistoryRequest
from triplewire.http.resources.ontologies import OntologyManager as Loading
from triplewire.model.errors import BadRequest
from triplewire.model.terms import TW
from triplewire.rdf import TURTLE
from triplewire.security import Verb, Visibility, parse_policy, visibility_of
from triplewire.security.visibility import ALL_VISIBLE
from triplewire.testing import open_twin

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
PREFIXES = f"""PREFIX : <urn:p:> PREFIX c: <urn:c:> PREFIX n: <urn:n:> PREFIX q: <urn:q:> PREFIX tw: <{TW}>
"""
ORACLE = tuple(
    PREFIXES + each
    for each in (
        "SELECT * { ?s ?p ?o }",
        "SELECT * { GRAPH ?g { ?s ?p ?o } }",
        "SELECT * { GRAPH ?g { ?s :one ?o . ?o ?p ?x } }",
        "SELECT * { ?s :one ?o OPTIONAL { ?o :two ?x } }",
        "SELECT * { ?s a ?c MINUS { ?s :one ?o } }",
        "SELECT * { ?s a c:Shut . ?s ?p ?o }",
        "SELECT * { ?s ?p ?o FILTER NOT EXISTS { ?s a c:Shut } }",
        "SELECT * { ?s :one ?o FILTER EXISTS { GRAPH ?g { ?o a ?c } } }",
        "SELECT * { { ?s :one ?o } UNION { ?o q:three ?s } }",
        "SELECT * { ?s (:one|:two)+ ?o }",
        "SELECT * { ?s !(:one|a) ?o }",
        "SELECT * { n:a (^:one/:two?)* ?o }",
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
        "SELECT (COUNT(DISTINCT ?g) AS ?n) { GRAPH ?g { ?s ?p ?o } }",
        "SELECT ?p (COUNT(?o) AS ?n) (SUM(?o) AS ?sum) (MAX(?o) AS ?max) { ?s ?p ?o } GROUP BY ?p",
        "SELECT ?c (COUNT(*) AS ?n) { ?s a ?c } GROUP BY ?c HAVING(COUNT(*) > 1)",
        "SELECT ?s ?n { ?s a ?c { SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s } }",
        "SELECT DISTINCT ?s { ?s ?p ?o } ORDER BY ?s",
        "SELECT * { VALUES ?s { n:a n:b } ?s ?p ?o FILTER(?o > 1) }",
        "SELECT * FROM <urn:open:0> FROM NAMED <urn:closed:1> { ?s ?p ?o OPTIONAL { GRAPH ?g { ?s ?q ?x } } }",
        "ASK { ?s :one ?o }",
        "ASK { GRAPH ?g { n:a a c:Open } }",
        "CONSTRUCT { ?o :made ?s } WHERE { ?s ?p ?o FILTER(isIRI(?o)) }",
        "CONSTRUCT WHERE { ?s a ?c }",
    )
)
"""Queries that another engine answers in one way."""

OURS = tuple(
    PREFIXES + each
    for each in (
        "SELECT * { ?e tw:stream ?s }",
        "SELECT * { ?e tw:stream ?s ; tw:time ?t . GRAPH ?e { n:a ?p ?o } }",
        "SELECT ?s (COUNT(*) AS ?n) { ?e tw:stream ?s } GROUP BY ?s",
        "SELECT * { GRAPH ?g {} }",
        "SELECT ?o { ?s ?p ?o } LIMIT 2",
        "SELECT * { ?s ?p ?o } ORDER BY ?p LIMIT 3 OFFSET 1",
        "SELECT * { { SELECT ?s { ?s ?p ?o } LIMIT 1 } ?s ?q ?x }",
        "SELECT (SAMPLE(?o) AS ?one) (GROUP_CONCAT(?s) AS ?all) { ?s ?p ?o }",
        "SELECT * { ?s ?p ?o BIND(REGEX('te', STR(?o)) AS ?found) BIND(1 / ?o + STRLEN(?o) AS ?made) }",
        "CONSTRUCT { ?s :has [ :is ?o ] } WHERE { ?s ?p ?o }",
        "DESCRIBE n:a",
        "DESCRIBE ?s { ?s :one ?o }",
        "DESCRIBE <urn:open:0>",
    )
)
"""Queries whose answers leave a choice, or are ours alone. They are compared with those over what is let through."""

ZOO = b"""@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<urn:c:Shut> rdfs:subClassOf <urn:c:Open> . <urn:p:one> rdfs:subPropertyOf <urn:p:two> ; rdfs:range <urn:c:Shut> ."""


@pytest.fixture(scope="module")
def compiler() -> QueryCompiler:
    with open_twin("memory") as stores:
        Loading(stores.registry).load("zoo", ZOO, TURTLE)
        return QueryCompiler("duckdb", (), OntologyTables(stores.registry))


def history(
    path: str, occurrences: tuple[Occurrence, ...], compiler: QueryCompiler, *, parted: bool, copies: bool
) -> HistoryExecutor:
    found = snapshot(Path(path), occurrences, parted=parted)
    return HistoryExecutor(Shelved([found]), DuckDbEngine(Path(path), copies=copies), compiler=compiler)


def asked(at: HistoryExecutor, text: str, visibility: Visibility, **said: Any) -> bytes:  # noqa: ANN401
    form = (
        None if "explain" in said else "ntriples" if any(word in text for word in ("CONSTRUCT", "DESCRIBE")) else "json"
    )
    request = HistoryRequest(text, format=form, visibility=visibility, **said)
    with at.start_deadline(request) as deadline:
        return b"".join(at.answer(request, deadline).chunks)


def store(world: World) -> ox.Store:
    """What is let through: events as named graphs, and in the default graph each of their triples once."""
    found = oracle.store(each.event for each in world.seen())
    found.extend([ox.Quad(each.subject, each.predicate, each.object) for each in found])
    return found


def check_oracle(at: HistoryExecutor, text: str, visibility: Visibility, found: Any) -> None:  # noqa: ANN401
    if isinstance(found, ox.QuerySolutions):
        assert oracle.bag(orjson.loads(asked(at, text, visibility))) == oracle.bag_of(found)
    elif isinstance(found, ox.QueryTriples):
        lines = asked(at, text, visibility)
        assert set(ox.parse(lines, format=ox.RdfFormat.N_TRIPLES)) == {ox.Quad(*triple) for triple in found}
    else:
        assert orjson.loads(asked(at, text, visibility))["boolean"] is bool(found)


def check(world: World, texts: list[str], compiler: QueryCompiler, *, parted: bool, copies: bool) -> None:
    try:
        policy = parse_policy(world.policy())
    except BadRequest:
        assume(False)
        raise
    visibility = visibility_of(world.principal, Verb.QUERY, policy) or ALL_VISIBLE
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        whole = history(one, world.occurrences, compiler, parted=parted, copies=copies)
        less = history(two, world.seen(), compiler, parted=parted, copies=copies)
        for text in texts:
            if text in ORACLE:
                check_oracle(whole, text, visibility, store(world).query(text))
            assert asked(whole, text, visibility) == asked(less, text, visibility)
        for said in ({"explain": "text"}, {"explain": "json"}, {"entailment": "rdfs"}):
            assert asked(whole, texts[0], visibility, **said) == asked(less, texts[0], visibility, **said)
        whole.close()
        less.close()


@given(worlds(), st.lists(st.sampled_from((*ORACLE, *OURS)), min_size=2, max_size=2), st.booleans(), st.booleans())
@settings(max_examples=8, deadline=None)
def test_an_answer_is_that_over_what_is_let_through(
    compiler: QueryCompiler, world: World, texts: list[str], parted: bool, copies: bool
) -> None:
    check(world, texts, compiler, parted=parted, copies=copies)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_each_query_under_some_policy(compiler: QueryCompiler, case: Path) -> None:
    """Each case has its share of the queries."""
    world = World.from_json(orjson.loads(case.read_bytes()))
    check(world, [*ORACLE, *OURS][CASES.index(case) :: len(CASES)], compiler, parted=True, copies=False)
