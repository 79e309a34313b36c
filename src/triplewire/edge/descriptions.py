"""The service description: what the door of history offers, as RDF."""

from __future__ import annotations

import pyarrow as pa
from aiohttp import web

from triplewire.history.formats import choose_format
from triplewire.model.terms import RDF_TYPE, iri
from triplewire.rdf import check_id

_SD = "http://www.w3.org/ns/sparql-service-description#"
_FORMATS = (
    "SPARQL_Results_JSON",
    "SPARQL_Results_XML",
    "SPARQL_Results_CSV",
    "SPARQL_Results_TSV",
    "Turtle",
    "N-Triples",
    "JSON-LD",
    "RDF_XML",
)

Triple = tuple[str, str, str]


def description(request: web.Request, accept: str | None, *, federated: bool) -> web.Response:
    """In the syntax that the client likes best. Raises NotAcceptable."""
    chosen = choose_format("construct", accept, request.query.get("format"))
    endpoint = check_id(str(request.url.with_query(None).with_fragment(None)))
    columns = [list(column) for column in zip(*triples(endpoint, federated=federated), strict=True)]
    batch = pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], ["s", "p", "o"])
    body = b"".join(chosen.write("construct", (), iter([batch])))
    return web.Response(body=body, headers={"Content-Type": chosen.content_type, "Vary": "Accept"})


def triples(endpoint: str, *, federated: bool) -> list[Triple]:
    """The description as triples, in canonical text."""
    service, dataset, graph = iri(endpoint), "_:dataset", "_:graph"
    features = ("UnionDefaultGraph", *(("BasicFederatedQuery",) if federated else ()))
    return [
        (service, RDF_TYPE, _sd("Service")),
        (service, _sd("endpoint"), service),
        (service, _sd("supportedLanguage"), _sd("SPARQL11Query")),
        *((service, _sd("resultFormat"), iri(f"http://www.w3.org/ns/formats/{name}")) for name in _FORMATS),
        *((service, _sd("feature"), _sd(name)) for name in features),
        (service, _sd("defaultEntailmentRegime"), iri("http://www.w3.org/ns/entailment/Simple")),
        (service, _sd("defaultDataset"), dataset),
        (dataset, RDF_TYPE, _sd("Dataset")),
        (dataset, _sd("defaultGraph"), graph),
        (graph, RDF_TYPE, _sd("Graph")),
    ]


def _sd(name: str) -> str:
    return iri(_SD + name)
