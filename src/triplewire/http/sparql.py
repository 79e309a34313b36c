"""The SPARQL endpoint: `GET|POST /sparql` over history, by the SPARQL 1.1 Protocol, with the service description as
RDF.

A request is validated here, once. The answer is streamed as it is computed; the connection of an incomplete answer is
reset, so that no client takes it for the whole.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

import pyarrow as pa
from aiohttp import web
from multidict import MultiDict

from triplewire.history.formats.results import choose_format
from triplewire.history.requests import HistoryRequest
from triplewire.http.auth import caller
from triplewire.http.openapi import resource_operations, routes_of, serves
from triplewire.http.openapi.resource_operations import DATASET_GRAPHS
from triplewire.http.ports import SparqlAnswer, SparqlService, ThreadPool
from triplewire.model.errors import BadRequest, BodyTooLarge, TriplewireError, UnknownMediaType, Unsupported
from triplewire.model.terms import RDF_TYPE, iri
from triplewire.rdf import check_id
from triplewire.security import Verb, visibility_of
from triplewire.sparql.syntax.queries import QUERY_BYTES
from triplewire.storage.registry.security import PolicyStore

QUERY = "application/sparql-query"
FORM = "application/x-www-form-urlencoded"
_UPDATE = "application/sparql-update"

_FIELDS = 2 * DATASET_GRAPHS + 16
"""Fields of a form: the graphs, and all other parameters."""

_DIGITS = 18
"""Digits of a version number: more than a 64-bit integer has are those of none."""


async def parse_query_request(request: web.Request) -> HistoryRequest | None:
    """Return the query of a request; None if it has none. Raises InputError."""
    parameters = await _parameters(request)
    if "update" in parameters:
        raise Unsupported("SPARQL Update", hint="events are published to /streams/{stream}; history does not change")
    text = _single(parameters, "query")
    if text is None:
        return None
    if not text.strip():
        raise BadRequest("the query is empty; give it as ?query=, as a form field, or as the body")
    if len(_encode(text, "query")) > QUERY_BYTES:
        raise BodyTooLarge("the query", QUERY_BYTES)
    return HistoryRequest(
        text,
        accept=read_accept(request),
        format=_single(parameters, "format"),
        default_graphs=_graphs(parameters, "default-graph-uri"),
        named_graphs=_graphs(parameters, "named-graph-uri"),
        engine=_single(parameters, "engine") or "auto",
        seconds=_seconds(parameters),
        entailment=_single(parameters, "entailment"),
        explain=_single(parameters, "explain"),
        version=_version(parameters),
        as_of=_single(parameters, "as_of"),
    )


def read_accept(request: web.Request) -> str | None:
    """Return the Accept headers joined to one."""
    return ",".join(request.headers.getall("Accept", ())) or None


async def _parameters(request: web.Request) -> MultiDict[str]:
    """Return the parameters of address and body. A body that is a query counts as `query`."""
    parameters = MultiDict(request.query)
    if request.method == "GET":
        return parameters
    if (request.content_length or 0) > 4 * QUERY_BYTES:
        raise BodyTooLarge("the query", QUERY_BYTES)
    if request.content_type == QUERY:
        parameters.add("query", _decode(await request.read()))
    elif request.content_type == FORM:
        parameters.extend(await _form(request))
    elif request.content_type == _UPDATE:
        parameters.add("update", "")
    else:
        raise UnknownMediaType(request.headers.get("Content-Type", ""), (QUERY, FORM))
    return parameters


async def _form(request: web.Request) -> MultiDict[str]:
    text = _decode(await request.read())
    try:
        return MultiDict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS))
    except ValueError as error:
        raise BadRequest(f"the form cannot be read: {error}") from None


def _decode(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the query is not UTF-8 at byte {error.start}") from None


def _encode(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadRequest(f"the parameter {name} is not UTF-8") from None


def _single(parameters: MultiDict[str], name: str) -> str | None:
    values = parameters.getall(name, [])
    if len(values) > 1:
        raise BadRequest(f"the parameter {name} is given {len(values)} times; give it once")
    if values:
        _encode(values[0], name)
    return values[0] if values else None


def _graphs(parameters: MultiDict[str], name: str) -> tuple[str, ...] | None:
    values = parameters.getall(name, [])
    if len(values) > DATASET_GRAPHS:
        raise BadRequest(f"{len(values)} parameters {name} are given; at most {DATASET_GRAPHS} are allowed")
    for value in values:
        _encode(value, name)
    return tuple(map(check_id, values)) or None


def _seconds(parameters: MultiDict[str]) -> float | None:
    text = _single(parameters, "timeout")
    try:
        return None if text is None else float(text)
    except ValueError:
        raise BadRequest(f"the parameter timeout must be a number of seconds, not {text!r}") from None


def _version(parameters: MultiDict[str]) -> int | None:
    text = _single(parameters, "version")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise BadRequest(f"the parameter version must be the number of a version, not {text!r}")
    return int(text)


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


def describe_service(request: web.Request, accept: str | None, *, federated: bool) -> web.Response:
    """Return the service description in the syntax that the client prefers. Raises NotAcceptable."""
    chosen = choose_format("construct", accept, request.query.get("format"))
    endpoint = check_id(str(request.url.with_query(None).with_fragment(None)))
    columns = [list(column) for column in zip(*list_description_triples(endpoint, federated=federated), strict=True)]
    batch = pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], ["s", "p", "o"])
    body = b"".join(chosen.write("construct", (), iter([batch])))
    return web.Response(body=body, headers={"Content-Type": chosen.content_type, "Vary": "Accept"})


def list_description_triples(endpoint: str, *, federated: bool) -> list[Triple]:
    """Return the service description as triples, in canonical text."""
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


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SparqlEndpoint:
    """`GET /sparql` and `POST /sparql`."""

    service: SparqlService
    policies: PolicyStore
    threads: ThreadPool
    federated: bool = False
    """Whether SERVICE may ask any endpoint."""

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.get, self.post)

    @serves(resource_operations.SPARQL_GET)
    async def get(self, request: web.Request) -> web.StreamResponse:
        """Answer a query; without one, with the service description."""
        asked = await parse_query_request(request)
        if asked is None:
            return describe_service(request, read_accept(request), federated=self.federated)
        return await self._answer(request, asked)

    @serves(resource_operations.SPARQL_POST)
    async def post(self, request: web.Request) -> web.StreamResponse:
        asked = await parse_query_request(request)
        if asked is None:
            raise BadRequest("there is no query; give it as ?query=, as a form field, or as the body")
        return await self._answer(request, asked)

    async def _answer(self, request: web.Request, asked: HistoryRequest) -> web.StreamResponse:
        policy = (await self.threads.run(self.policies.current)).policy
        visibility = visibility_of(caller(request), Verb.QUERY, policy)
        answer = await self.service.ask(asked if visibility is None else replace(asked, visibility=visibility))
        try:
            return await _stream_answer(request, answer)
        finally:
            answer.close()


async def _stream_answer(request: web.Request, answer: SparqlAnswer) -> web.StreamResponse:
    """Stream the answer. If it stays incomplete the connection is reset, so that no client takes it for the whole."""
    pieces = aiter(answer)
    # A query that is refused before the first bytes still gets a problem document.
    first = await anext(pieces, b"")
    response = web.StreamResponse(headers={"Content-Type": answer.content_type, "Vary": "Accept"})
    await response.prepare(request)
    try:
        async with asyncio.timeout_at(answer.deadline):
            await response.write(first)
            async for piece in pieces:
                await response.write(piece)
            await response.write_eof()
    except (TriplewireError, TimeoutError) as error:
        logger.warning("an answer was aborted: %s", error or "the client read too slowly")
        _reset_connection(request)
    return response


def _reset_connection(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
    raise ConnectionResetError("the answer was aborted")
