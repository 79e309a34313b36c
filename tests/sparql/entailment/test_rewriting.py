"""Query rewriting: a rewritten query answers as the original does over everything entailed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import duckdb
import pyoxigraph as ox
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.conformance.datasets import Dataset
from tests.conformance.engines import relations
from tests.conformance.engines.answers import answer
from tests.conformance.results import Rows
from tests.sparql.entailment.rdfs_oracle import (
    DOMAIN,
    RANGE,
    RDF_TYPE,
    SUB_CLASS,
    SUB_PROPERTY,
    Triple,
    closed,
    closed_schema,
)
from triplewire.model.errors import QueryLimit
from triplewire.sparql import parse_query
from triplewire.sparql.algebra import Either, Reach, Repeat, Select
from triplewire.sparql.entailment import rewriting
from triplewire.sparql.entailment.ontologies import Ontology, build_ontology
from triplewire.sparql.entailment.rewriting import rewrite_query
from triplewire.sparql.queries import compile_query
from triplewire.sparql.traversal import mentioned_variables

PROLOGUE = "PREFIX : <urn:> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>"
CLASSES, PROPERTIES = ([f"<urn:{name}>" for name in names] for names in ("ABCD", "pqrs"))
NODES = [*(f"<urn:{name}>" for name in "xyz"), CLASSES[0]]
LITERALS = ['"1"', '"x"@en']

data = st.frozensets(
    st.one_of(
        st.tuples(st.sampled_from(NODES), st.sampled_from(PROPERTIES), st.sampled_from(NODES + LITERALS)),
        st.tuples(st.sampled_from(NODES), st.just(RDF_TYPE), st.sampled_from(CLASSES)),
    ),
    max_size=8,
)
schemas = st.frozensets(
    st.one_of(
        st.tuples(st.sampled_from(CLASSES), st.just(SUB_CLASS), st.sampled_from(CLASSES)),
        st.tuples(st.sampled_from(PROPERTIES), st.just(SUB_PROPERTY), st.sampled_from(PROPERTIES)),
        st.tuples(st.sampled_from(PROPERTIES), st.sampled_from([DOMAIN, RANGE]), st.sampled_from(CLASSES)),
    ),
    max_size=7,
)
odd = st.frozensets(
    st.sampled_from(
        [
            ("<urn:r>", SUB_PROPERTY, RDF_TYPE),
            (RDF_TYPE, SUB_PROPERTY, "<urn:up>"),
            (SUB_CLASS, SUB_PROPERTY, "<urn:q>"),
            (SUB_CLASS, DOMAIN, "<urn:D>"),
            (SUB_PROPERTY, RANGE, "<urn:A>"),
        ]
    ),
    max_size=2,
)

# pyoxigraph counts solutions of alternative paths once, so DISTINCT is asked for
PATTERNS = [
    "SELECT * { ?s a :A }",
    "SELECT * { ?s a :D . ?s :q ?o }",
    "SELECT * { ?s a ?c }",
    "SELECT * { ?c a ?c }",
    "SELECT * { :x a ?c }",
    "ASK { :x a :B }",
    "SELECT * { ?s :p ?o . ?o :q ?x }",
    "SELECT ?s { ?s :r [] }",
    "SELECT * { ?s :up ?o }",
    "SELECT * { ?s ?p ?o }",
    "SELECT * { ?s ?p :A }",
    "SELECT * { ?s ?p ?p }",
    "SELECT * { :x ?p ?o . ?o a ?c }",
    "SELECT * { ?c rdfs:subClassOf ?d }",
    "SELECT * { :A rdfs:subClassOf ?d . ?x a ?d }",
    "SELECT * { ?p rdfs:subPropertyOf :q . ?s ?p ?o }",
    "SELECT * { ?p rdfs:domain ?c . OPTIONAL { ?p rdfs:range ?d } }",
    "SELECT * { GRAPH ?g { ?s a ?c } }",
    "SELECT * { GRAPH ?g { ?s :q ?o . ?s a :A } }",
    "SELECT * { GRAPH :g1 { ?s ?p ?o } }",
    "SELECT * { GRAPH ?g { ?c rdfs:subClassOf :A } }",
    "SELECT * { ?s :p ?o FILTER EXISTS { ?o a :C } }",
    "SELECT * { ?s ?p ?o FILTER NOT EXISTS { ?s :q ?o } }",
    "SELECT * { ?s a :A OPTIONAL { ?s :q ?o FILTER(isIRI(?o)) } }",
    "SELECT * { ?s a ?c MINUS { ?s a :B } }",
    "SELECT ?c (COUNT(*) AS ?n) { ?s a ?c } GROUP BY ?c",
    "SELECT * { ?s !(:p|rdfs:subClassOf) ?o }",
    "SELECT DISTINCT * { ?s !(^:q|:p) ?o }",
    "SELECT ?c { :x :q/a ?c }",
    "SELECT DISTINCT * { ?s (:p|:q)/^:r ?o }",
]
PATHS = [
    "SELECT * { ?s :q+ ?o }",
    "SELECT * { :x :p/:q* ?o }",
    "SELECT * { ?s :p/(:q|^:r)+ ?o }",
    "SELECT * { ?s a/rdfs:subClassOf* :A }",
    "SELECT * { :x a/rdfs:subClassOf* ?c }",
    "SELECT * { :A rdfs:subClassOf+ ?c }",
    "SELECT * { ?s :p/:q? ?o }",
    "SELECT * { GRAPH ?g { ?s :q+ ?o } }",
]
GRAPHS = ("urn:g1", "urn:g2")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PATTERNS), st.tuples(data, data, data), schemas, odd)
@example(
    PATTERNS[0],
    (frozenset({("<urn:x>", "<urn:p>", '"1"')}),) * 3,
    frozenset({("<urn:p>", RANGE, "<urn:A>")}),
    frozenset(),
)
def test_patterns_answer_as_over_all_that_follows(
    text: str, graphs: tuple[frozenset[Triple], ...], schema: frozenset[Triple], more: frozenset[Triple]
) -> None:
    check(text, graphs, schema | more)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(PATHS), st.tuples(data, data, data), schemas)
def test_paths_answer_as_over_all_that_follows(
    text: str, graphs: tuple[frozenset[Triple], ...], schema: frozenset[Triple]
) -> None:
    check(text, graphs, schema)


def check(text: str, graphs: tuple[frozenset[Triple], ...], schema: frozenset[Triple]) -> None:
    # a domain or range of rdf:type itself applies to stated triples, not to entailed ones
    above = {upper for lower, means, upper in closed_schema(schema) if means == SUB_PROPERTY and lower == RDF_TYPE}
    schema = frozenset(each for each in schema if each[1] not in (DOMAIN, RANGE) or each[0] not in above)
    default, *named = graphs
    known = dict(zip(GRAPHS, named, strict=True))
    facts = closed_schema(schema)
    # there are no empty events, so no empty graphs
    wide = {name: closed(triples, facts) for name, triples in known.items() if triples}
    assert ours(text, default, known, build_ontology(schema)) == expected(text, closed(default, facts), wide)


def ours(
    text: str, default: Iterable[Triple], named: Mapping[str, Iterable[Triple]], ontology: Ontology
) -> Counter[tuple[str, ...]] | bool:
    dataset = Dataset(parsed(default), {name: parsed(triples) for name, triples in named.items()})
    relations.make(connection(), dataset)
    query = relations.scoped(rewrite_query(parse_query(f"{PROLOGUE} {text}"), ontology), dataset)
    compiled = compile_query(query, "duckdb")
    found = answer(compiled, connection().sql(compiled.sql).to_arrow_table())
    assert isinstance(found, bool | Rows)
    return found if isinstance(found, bool) else counted(found.names, found.rows)


def expected(
    text: str, default: Iterable[Triple], named: Mapping[str, Iterable[Triple]]
) -> Counter[tuple[str, ...]] | bool:
    store = ox.Store()
    store.extend(quads(default, ox.DefaultGraph()))
    for name, triples in named.items():
        store.extend(quads(triples, ox.NamedNode(name)))
    found = store.query(f"{PROLOGUE} {text}")
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    assert isinstance(found, ox.QuerySolutions)
    names = [each.value for each in found.variables]
    return counted(names, [tuple(row[name] for name in names) for row in found])


def counted(names: Iterable[str], rows: Iterable[tuple[object, ...]]) -> Counter[tuple[str, ...]]:
    """The bag of solutions, whatever the order of their variables."""
    order = sorted(range(len(list(names))), key=list(names).__getitem__)
    return Counter(tuple(str(row[place]) for place in order) for row in rows)


def parsed(triples: Iterable[Triple]) -> tuple[ox.Triple, ...]:
    return tuple(each.triple for each in quads(triples, ox.DefaultGraph()))


def quads(triples: Iterable[Triple], graph: ox.NamedNode | ox.DefaultGraph) -> Iterator[ox.Quad]:
    text = "".join(f"{' '.join(each)} .\n" for each in triples)
    for each in ox.parse(text, format=ox.RdfFormat.N_TRIPLES):
        yield ox.Quad(each.subject, each.predicate, each.object, graph)


@cache
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


SMALL = build_ontology(
    [("<urn:A>", SUB_CLASS, "<urn:B>"), ("<urn:p>", SUB_PROPERTY, "<urn:q>"), ("<urn:p>", DOMAIN, "<urn:A>")]
)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?s a :C . ?s :other ?o }",
        "SELECT * { ?s :p ?o }",
        "SELECT * { ?s :other/:p+ ?o FILTER EXISTS { ?o :other [] } }",
        "SELECT * { ?s :other|^:p ?o }",
    ],
)
def test_what_the_ontology_does_not_concern_stays_as_it_is(text: str) -> None:
    query = parse_query(f"{PROLOGUE} {text}")
    assert rewrite_query(query, SMALL) == query


@pytest.mark.parametrize("text", PATTERNS + PATHS)
def test_without_an_ontology_nothing_changes(text: str) -> None:
    query = parse_query(f"{PROLOGUE} {text}")
    assert rewrite_query(query, Ontology()) is query


def test_a_class_is_looked_up_among_those_below_it() -> None:
    query = rewrite_query(parse_query(f"{PROLOGUE} SELECT * {{ ?s a :A . ?s :other ?o }}"), SMALL)
    assert isinstance(query.where, Select)
    assert query.projection == ("s", "o")
    fresh = {name for name in mentioned_variables(query.where) if name.startswith(".~")}
    assert len(fresh) == 1


def test_variables_that_are_made_are_never_the_same() -> None:
    query = rewrite_query(parse_query(f"{PROLOGUE} SELECT * {{ ?s :q ?o . ?o :q ?s }}"), SMALL)
    fresh = [name for name in mentioned_variables(query.where) if name.startswith(".~")]
    assert len(fresh) == 2


def test_what_repeats_takes_its_steps_by_sub_properties() -> None:
    query = rewrite_query(parse_query(f"{PROLOGUE} SELECT * {{ ?s :q+ ?o }}"), SMALL)
    assert isinstance(query.where, Select)
    assert isinstance(query.where.inner, Reach)
    assert isinstance(query.where.inner.path, Repeat)
    assert isinstance(query.where.inner.path.path, Either)


def test_predicates_that_are_not_stored_have_super_properties_too() -> None:
    stream = "<https://triplewire.dev/ns#stream>"
    ontology = build_ontology([(stream, SUB_PROPERTY, "<urn:q>"), (stream, DOMAIN, "<urn:Event>")])
    text, graph = 'SELECT ?c { ?e :q "w3c" ; a ?c FILTER(?e = :g1) }', [("<urn:x>", "<urn:r>", "<urn:y>")]
    dataset = Dataset((), {"urn:g1": parsed(graph)})
    relations.make(connection(), dataset)
    compiled = compile_query(rewrite_query(parse_query(f"{PROLOGUE} {text}"), ontology), "duckdb")
    assert connection().sql(compiled.sql).fetchall() == [("<urn:Event>",)]


def test_a_pattern_that_meets_too_much_of_the_ontology_is_refused() -> None:
    wide = build_ontology((f"<urn:c{n}>", SUB_CLASS, "<urn:A>") for n in range(rewriting.ENTAILMENT_ROWS + 1))
    with pytest.raises(QueryLimit, match="name a class"):
        rewrite_query(parse_query(f"{PROLOGUE} SELECT * {{ ?s a ?c }}"), wide)
    narrow = parse_query(f"{PROLOGUE} SELECT * {{ ?s a :c1 }}")
    assert rewrite_query(narrow, wide) == narrow
