"""Federation (SERVICE): answers of other SPARQL endpoints are fetched before a query is compiled and inlined as
VALUES.

A request has no redirects and is bounded in time and size. Results are validated and become terms of our own.
"""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Timer
from typing import Any, Final
from urllib.parse import SplitResult, urlencode, urlsplit
from uuid import uuid4

import orjson

from triplewire.history.requests import QueryLimits
from triplewire.model.errors import QueryLimit, Unavailable, Unsupported
from triplewire.model.terms import XSD_STRING, iri, literal
from triplewire.sparql.algebra import Const, Operator, Query, Service, Values
from triplewire.sparql.traversal import iterate_parts, transform_operators

SERVICE_SECONDS: Final = 10.0
"""Time limit of one SERVICE call, within that of the query."""

SERVICE_BYTES: Final = 8 * 1024 * 1024
"""Size limit of an endpoint's answer, parsed in memory: at worst about eight times this."""

SERVICE_ROWS: Final = 10_000
"""Solutions of one SERVICE call. They become part of the query's SQL."""

_HEADERS = {
    "Accept": "application/sparql-results+json",
    "Content-Type": "application/x-www-form-urlencoded",
    "User-Agent": "triplewire",
}
_CONNECTIONS: dict[str, type[http.client.HTTPConnection]] = {
    "http": http.client.HTTPConnection,
    "https": http.client.HTTPSConnection,
}


def post_query(address: str, query: str, seconds: float) -> bytes:
    """Send a SELECT to an endpoint; return its SPARQL JSON results. Raises Unavailable or QueryLimit."""
    url = urlsplit(address)
    connection = _connection(url, seconds)
    try:
        with _close_after(connection, seconds):
            connection.request("POST", _target(url), urlencode({"query": query}).encode(), _HEADERS)
            return _read_body(connection.getresponse(), address)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unavailable(f"<{address}> does not answer: {error or type(error).__name__}") from None
    finally:
        connection.close()


def _connection(url: SplitResult, seconds: float) -> http.client.HTTPConnection:
    if url.scheme not in _CONNECTIONS or not url.hostname:
        raise Unavailable(f"<{url.geturl()}> is not the address of an endpoint; use http or https")
    try:
        return _CONNECTIONS[url.scheme](url.hostname, url.port, timeout=seconds)
    except ValueError as error:
        raise Unavailable(f"<{url.geturl()}> is not the address of an endpoint: {error}") from None


def _target(url: SplitResult) -> str:
    return (url.path or "/") + (f"?{url.query}" if url.query else "")


def _read_body(response: http.client.HTTPResponse, address: str) -> bytes:
    if response.status != http.HTTPStatus.OK:
        raise Unavailable(f"<{address}> answered with status {response.status}")
    body = response.read(SERVICE_BYTES + 1)
    if len(body) > SERVICE_BYTES:
        raise QueryLimit(f"<{address}> answered more than {SERVICE_BYTES} bytes; request less")
    return body


@contextmanager
def _close_after(connection: http.client.HTTPConnection, seconds: float) -> Iterator[None]:
    """Shut the connection when the time is over: one that sends a byte now and then never meets a read timeout."""
    timer = Timer(seconds, _cut_connection, (connection,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _cut_connection(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)


_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")

Row = tuple[str | None, ...]


def parse_solutions(body: bytes, names: Sequence[str], source: str) -> tuple[Row, ...]:
    """Return a row for each solution, with a term or None for each name; blank nodes are renamed.

    Raises Unavailable for a malformed document.
    """
    blanks = BlankNodes()
    try:
        bindings = orjson.loads(body)["results"]["bindings"]
        return tuple(
            tuple(_parse_term(binding[name], blanks) if name in binding else None for name in names)
            for binding in bindings
        )
    except (orjson.JSONDecodeError, LookupError, TypeError, ValueError) as error:
        raise Unavailable(f"{source} gave no SPARQL JSON results: {error}") from None


class BlankNodes:
    """Fresh labels for the blank nodes of one document, distinct from all others."""

    def __init__(self) -> None:
        self._prefix = f"_:s{uuid4().hex}n"
        self._labels: dict[str, str] = {}

    def rename(self, label: str) -> str:
        return self._labels.setdefault(label, f"{self._prefix}{len(self._labels)}")


def _parse_term(term: Mapping[str, Any], blanks: BlankNodes) -> str:
    kind, value = term["type"], _check_text(term["value"])
    if kind == "uri":
        return iri(_check_pattern(_IRI, value))
    if kind == "bnode":
        return blanks.rename(value)
    if kind not in ("literal", "typed-literal"):
        raise ValueError(f"a term of type {kind!r}")
    if "xml:lang" in term:
        return literal(value, language=_check_pattern(_TAG, _check_text(term["xml:lang"])).lower())
    return literal(value, _check_pattern(_IRI, _check_text(term.get("datatype", XSD_STRING))))


def _check_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _check_pattern(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is malformed")
    return text


NO_BINDINGS = Values((), ((),))
"""The one empty solution."""


def resolve_services(query: Query, allowed: Collection[str], bounds: QueryLimits) -> Query:
    """Replace every SERVICE of a query by its solutions.

    Raises Unsupported for an endpoint that is not allowed, and what `fetch_service` raises.
    """
    if not any(isinstance(part, Service) for part in iterate_parts(query)):
        return query

    def resolve(operator: Operator) -> Operator:
        return fetch_service(_check_allowed(operator, allowed), bounds) if isinstance(operator, Service) else operator

    return replace(query, where=transform_operators(query.where, resolve))


def fetch_service(service: Service, bounds: QueryLimits) -> Values:
    """Return all solutions of the group at the endpoint, whatever the rest of the query needs.

    Raises Unavailable or QueryLimit, unless the query says SILENT.
    """
    try:
        return _ask_service(service, min(bounds.seconds, SERVICE_SECONDS))
    except (Unavailable, QueryLimit):
        if service.silent:
            return NO_BINDINGS
        raise


def _check_allowed(service: Service, allowed: Collection[str]) -> Service:
    if not isinstance(service.endpoint, Const):
        raise Unsupported("SERVICE with a variable", hint="write the address of the endpoint into the query")
    address = service.endpoint.term[1:-1]
    if address not in allowed:
        raise Unsupported(f"SERVICE <{address}>", hint="the setting `services` lists the endpoints that may be called")
    return service


def _ask_service(service: Service, seconds: float) -> Values:
    assert isinstance(service.endpoint, Const), "permitted services have an address"
    address = service.endpoint.term[1:-1]
    body = post_query(address, f"{service.prologue}\nSELECT * WHERE {service.text}", seconds)
    rows = parse_solutions(body, service.names, f"SERVICE <{address}>")
    if len(rows) > SERVICE_ROWS:
        raise QueryLimit(f"SERVICE <{address}> has more than {SERVICE_ROWS} solutions; request less")
    return Values(service.names, rows)
