"""SERVICE: other endpoints are asked if that is allowed, and nothing that they do can hurt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event as Flag
from threading import Thread
from urllib.parse import parse_qs

import orjson
import pytest

from triplewire.history.federation import NO_BINDINGS, SERVICE_BYTES, SERVICE_ROWS, fetch_service, resolve_services
from triplewire.history.requests import QueryLimits
from triplewire.model.errors import QueryLimit, Unavailable, Unsupported
from triplewire.sparql.algebra import Apply, Basic, Const, Exists, Filter, Join, Query, Select, Service, Values, Var

Reply = Callable[[BaseHTTPRequestHandler, str], None]


def results(*bindings: Mapping[str, object]) -> bytes:
    return orjson.dumps({"head": {"vars": ["x", "y"]}, "results": {"bindings": bindings}})


def saying(body: bytes, status: int = 200, **headers: str) -> Reply:
    def reply(handler: BaseHTTPRequestHandler, query: str) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return reply


@contextmanager
def endpoint(reply: Reply) -> Iterator[tuple[str, list[str]]]:
    """An endpoint on a real socket: its address, and the queries that it was asked."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            heard.extend(parse_qs(body)["query"])
            reply(self, heard[-1])

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/sparql?a=b", heard
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def service(address: str, *, silent: bool = False) -> Service:
    return Service(Const(f"<{address}>"), silent, "PREFIX : <urn:>", "{ ?x :p ?y }", ("x", "y"))


def test_solutions_come_back_as_terms() -> None:
    body = results(
        {"x": {"type": "uri", "value": "urn:é"}, "y": {"type": "literal", "value": 'a\n"', "xml:lang": "EN-gb"}},
        {"x": {"type": "bnode", "value": "b 1"}, "y": {"type": "literal", "value": "1", "datatype": "urn:int"}},
        {"x": {"type": "bnode", "value": "b 1"}, "other": {"type": "uri", "value": "urn:x"}},
        {"y": {"type": "typed-literal", "value": "", "datatype": "urn:int"}},
    )
    with endpoint(saying(body)) as (address, heard):
        found = fetch_service(service(address), QueryLimits())
    assert heard == ["PREFIX : <urn:>\nSELECT * WHERE { ?x :p ?y }"]
    assert found.names == ("x", "y")
    first, second, third, fourth = found.rows
    assert first == ("<urn:é>", '"a\\n\\""@en-gb')
    assert second[1] == '"1"^^<urn:int>'
    assert str(second[0]).startswith("_:s")
    assert third == (second[0], None)
    assert fourth == (None, '""^^<urn:int>')


def mumble(handler: BaseHTTPRequestHandler, query: str) -> None:
    handler.wfile.write(b"hello\r\n\r\n")


HOSTILE: list[tuple[str, Reply]] = [
    ("no document", saying(b"<html>")),
    ("another document", saying(b'{"boolean": true}')),
    ("a list", saying(b"[]")),
    ("a term that breaks out", saying(results({"x": {"type": "uri", "value": "urn:a> <urn:b"}}))),
    ("a relative address", saying(results({"x": {"type": "uri", "value": "a"}}))),
    ("a tag that breaks out", saying(results({"x": {"type": "literal", "value": "", "xml:lang": 'en" '}}))),
    ("a number for a text", saying(results({"x": {"type": "literal", "value": 7}}))),
    ("a triple", saying(results({"x": {"type": "triple", "value": "?"}}))),
    ("an error", saying(b"", 500)),
    ("a redirect", saying(b"", 307, Location="http://127.0.0.1:9/")),
    ("no HTTP", mumble),
    ("a body that is cut", saying(b"{", 200, **{"Content-Length": "100"})),
]


@pytest.mark.parametrize("reply", [pytest.param(reply, id=name) for name, reply in HOSTILE])
def test_what_is_no_answer_is_told_or_passed_over_in_silence(reply: Reply) -> None:
    with endpoint(reply) as (address, heard):
        with pytest.raises(Unavailable, match="127"):
            fetch_service(service(address), QueryLimits())
        assert fetch_service(service(address, silent=True), QueryLimits()) == NO_BINDINGS
    assert len(heard) == 2


def test_answers_that_are_too_large_are_refused() -> None:
    many = results(*[{"x": {"type": "uri", "value": "urn:x"}} for _ in range(SERVICE_ROWS + 1)])
    for body in (many, b" " * (SERVICE_BYTES + 1)):
        with endpoint(saying(body)) as (address, _), pytest.raises(QueryLimit, match="request less"):
            fetch_service(service(address), QueryLimits())


def test_an_endpoint_that_says_nothing_or_never_ends_is_left() -> None:
    released = Flag()

    def drip(handler: BaseHTTPRequestHandler, query: str) -> None:
        while not released.wait(0.01):
            handler.wfile.write(b"x")

    def silence(handler: BaseHTTPRequestHandler, query: str) -> None:
        released.wait()

    for reply in (silence, drip):
        with endpoint(reply) as (address, _):
            try:
                with pytest.raises(Unavailable, match="does not answer"):
                    fetch_service(service(address), QueryLimits(seconds=0.2))
            finally:
                released.set()
        released.clear()


def test_nobody_there_is_told() -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        fetch_service(service("http://127.0.0.1:1/"), QueryLimits())
    for address in ("file:///etc/passwd", "http://", "http://a:b/", "urn:x"):
        with pytest.raises(Unavailable, match="not the address"):
            fetch_service(service(address), QueryLimits())


def test_only_what_is_allowed_is_asked() -> None:
    def asking(inner: Service) -> Query:
        return Query("ask", inner)

    with endpoint(saying(results())) as (address, heard):
        for silent in (False, True):
            with pytest.raises(Unsupported, match=r"SERVICE <http.*the setting `services`"):
                resolve_services(asking(service(address, silent=silent)), (address + "c",), QueryLimits())
        with pytest.raises(Unsupported, match="with a variable"):
            resolve_services(asking(replace(service(address), endpoint=Var("e"))), (address,), QueryLimits())
        assert heard == []
        resolve_services(asking(service(address)), (address,), QueryLimits())
        assert len(heard) == 1


def test_services_are_found_wherever_they_stand() -> None:
    with endpoint(saying(results({"x": {"type": "uri", "value": "urn:x"}}))) as (address, _):
        found = service(address)
        condition = Apply("!", (Exists(Join(Basic(), found)),))
        query = Query("select", Select(Filter(Join(found, Values(("z",), (("<urn:z>",),))), (condition,)), ("x",)))
        resolved = resolve_services(query, (address,), QueryLimits())
    answer = Values(("x", "y"), (("<urn:x>", None),))
    condition = Apply("!", (Exists(Join(Basic(), answer)),))
    inner = Filter(Join(answer, Values(("z",), (("<urn:z>",),))), (condition,))
    assert resolved == Query("select", Select(inner, ("x",)))


def test_a_query_without_services_stays_as_it_is() -> None:
    query = Query("ask", Join(Basic(), Values(("z",), (("<urn:z>",),))))
    assert resolve_services(query, (), QueryLimits()) is query
