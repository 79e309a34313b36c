"""Querying: SPARQL over history, and the ontologies that give its words a meaning."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.config import limits
from triplewire.contract import parameters as with_
from triplewire.contract.operations import Content, Operation, Parameter
from triplewire.contract.schemas.forms import one_of
from triplewire.rdf import SYNTAXES

_ADMIN = (Verb.ADMIN,)
_READ = (Verb.QUERY, Verb.SUBSCRIBE, Verb.ADMIN)
_RDF = {each.media_type: None for each in SYNTAXES}
_IRIS = with_.several({"type": "string", "format": "iri"}, limits.DATASET_GRAPHS)

ANSWERS: dict[str, str | None] = {
    "application/sparql-results+json": "Results",
    "application/sparql-results+xml": None,
    "text/csv": None,
    "text/tab-separated-values": None,
    "text/turtle": None,
    "application/n-triples": None,
    "application/ld+json": None,
    "application/rdf+xml": None,
    "text/plain": None,
    "application/json": None,
}
"""The formats of answers, and of explanations."""

_QUERY = (
    Parameter("default-graph-uri", "The default graph, in place of FROM", schema=_IRIS),
    Parameter("named-graph-uri", "The named graphs, in place of FROM NAMED", schema=_IRIS),
    with_.FORMAT,
    Parameter("timeout", "Seconds, at most those of the settings", schema={"type": "number"}),
    Parameter("engine", "What answers it", schema=one_of(("auto", "duckdb", "spark"))),
    Parameter("entailment", "What follows from the ontologies counts, too", schema=one_of(("none", "rdfs"))),
    Parameter("explain", "Not the answer, but how it is found", schema=one_of(("text", "json"))),
    Parameter("version", "The number of a version of the lake", schema={"type": "integer", "minimum": 0}),
    Parameter(
        "as_of", "The version that was the newest at this time", schema={"type": "string", "format": "date-time"}
    ),
)
_ANSWERED = {200: Content(ANSWERS, "The answer, as it is found")}
_REFUSED = (400, 404, 406, 413, 422, 503)

ASK = Operation(
    "query",
    "Ask SPARQL of history",
    (Verb.QUERY,),
    description="SPARQL 1.1 Protocol. Without a query it is answered with the service description.",
    parameters=(Parameter("query", "The query"), *_QUERY),
    answers=_ANSWERED,
    problems=_REFUSED,
)
ASK_BY_POST = Operation(
    "queryByPost",
    "Ask SPARQL of history, with the query in the body",
    (Verb.QUERY,),
    description="A form with the same parameters, or the query itself.",
    parameters=_QUERY,
    body=Content({"application/sparql-query": None, "application/x-www-form-urlencoded": "QueryForm"}),
    answers=_ANSWERED,
    problems=(*_REFUSED, 415),
)
ONTOLOGIES = Operation(
    "listOntologies", "See the ontologies", _READ, answers={200: Content({"application/json": "Ontologies"})}
)
FIND_ONTOLOGY = Operation(
    "findOntology",
    "Read an ontology",
    _READ,
    parameters=(with_.NAME,),
    answers={200: Content(_RDF, "Its triples", headers=("ETag",))},
    problems=(404, 406),
)
LOAD_ONTOLOGY = Operation(
    "loadOntology",
    "Load or replace an ontology",
    _ADMIN,
    parameters=(with_.NAME,),
    body=Content(_RDF, "Its triples"),
    answers={200: Content({"application/json": "Ontology"}, headers=("Location",))},
    problems=(400, 409, 413, 415, 507),
)
REMOVE_ONTOLOGY = Operation(
    "removeOntology",
    "Remove an ontology",
    _ADMIN,
    parameters=(with_.NAME,),
    answers={204: Content(description="It is gone")},
    problems=(404, 409, 507),
)
