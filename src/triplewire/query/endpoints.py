"""Other endpoints, asked by the SPARQL protocol: one request, no redirects, bounded in time and size."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from urllib.parse import SplitResult, urlencode, urlsplit

from triplewire.config import limits
from triplewire.errors import QueryLimit, Unavailable

_HEADERS = {
    "Accept": "application/sparql-results+json",
    "Content-Type": "application/x-www-form-urlencoded",
    "User-Agent": "triplewire",
}
_CONNECTIONS: dict[str, type[http.client.HTTPConnection]] = {
    "http": http.client.HTTPConnection,
    "https": http.client.HTTPSConnection,
}


def post(address: str, query: str, seconds: float) -> bytes:
    """The endpoint's answer to a SELECT, as SPARQL JSON results. Raises Unavailable or QueryLimit."""
    url = urlsplit(address)
    connection = _connection(url, seconds)
    try:
        with _ended(connection, seconds):
            connection.request("POST", _target(url), urlencode({"query": query}).encode(), _HEADERS)
            return _body(connection.getresponse(), address)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unavailable(f"<{address}> does not answer: {error or type(error).__name__}") from None
    finally:
        connection.close()


def _connection(url: SplitResult, seconds: float) -> http.client.HTTPConnection:
    if url.scheme not in _CONNECTIONS or not url.hostname:
        raise Unavailable(f"<{url.geturl()}> is no address of an endpoint; use http or https")
    try:
        return _CONNECTIONS[url.scheme](url.hostname, url.port, timeout=seconds)
    except ValueError as error:
        raise Unavailable(f"<{url.geturl()}> is no address of an endpoint: {error}") from None


def _target(url: SplitResult) -> str:
    return (url.path or "/") + (f"?{url.query}" if url.query else "")


def _body(response: http.client.HTTPResponse, address: str) -> bytes:
    if response.status != http.HTTPStatus.OK:
        raise Unavailable(f"<{address}> answered with status {response.status}")
    body = response.read(limits.SERVICE_BYTES + 1)
    if len(body) > limits.SERVICE_BYTES:
        raise QueryLimit(f"<{address}> answered more than {limits.SERVICE_BYTES} bytes; ask it for less")
    return body


@contextmanager
def _ended(connection: http.client.HTTPConnection, seconds: float) -> Iterator[None]:
    """The connection is cut when the time is over: one that sends a byte now and then would never be too slow."""
    timer = Timer(seconds, _cut, (connection,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _cut(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)
