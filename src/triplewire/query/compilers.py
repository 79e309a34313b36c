"""Compilers: from a request to what an engine runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from triplewire.errors import Unsupported
from triplewire.model.terms import iri
from triplewire.query.ontologies import Ontologies
from triplewire.query.requests import Bounds, QueryRequest
from triplewire.query.services import resolve
from triplewire.sparql import Compiled, Dialect, Query, Statistics, compile_query, parse_query
from triplewire.sparql.algebra import Dataset
from triplewire.sparql.entailments import entailed

RDFS = "rdfs"
_ENTAILMENTS = (None, "none", "simple", RDFS)


@dataclass(frozen=True)
class Compiler:
    """Makes SQL in the dialect of one engine. `services` are the endpoints that SERVICE may ask, `ontologies` what
    entailment goes by."""

    dialect: Dialect = "duckdb"
    services: Collection[str] = ()
    ontologies: Ontologies | None = None

    def parsed(self, request: QueryRequest) -> Query:
        """The query over the dataset that the request names, under the entailment that it wishes for. Raises
        SparqlSyntax or Unsupported, and what `entailed` does."""
        if request.entailment not in _ENTAILMENTS:
            raise Unsupported(f"entailment={request.entailment}", hint="say rdfs, or leave it out")
        query = parse_query(request.text)
        if request.entailment == RDFS and self.ontologies is not None:
            query = entailed(query, self.ontologies.of())
        if request.default_graphs is None and request.named_graphs is None:
            return query
        return replace(query, dataset=Dataset(_terms(request.default_graphs), _terms(request.named_graphs)))

    def compiled(
        self, query: Query, bounds: Bounds, statistics: Statistics | None = None, *, steady: bool = False
    ) -> Compiled:
        """Raises Unsupported, and what other endpoints are the reason for."""
        return compile_query(resolve(query, self.services, bounds), self.dialect, statistics, steady=steady)


def _terms(addresses: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(iri(each) for each in addresses or ())
