"""A collector: takes spans by OTLP over HTTP, as OpenTelemetry's own definition of the protocol reads them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(frozen=True)
class Told:
    """A span, and of which service it is."""

    service: str
    span: Span

    @property
    def id(self) -> str:
        return self.span.span_id.hex()


@dataclass
class Collector:
    """Spans in the order in which they came."""

    url: str = ""
    spans: list[Told] = field(default_factory=list)
    _news: Condition = field(default_factory=Condition)

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self._news:
            for of in request.resource_spans:
                named = {each.key: each.value.string_value for each in of.resource.attributes}
                self.spans += [Told(named["service.name"], span) for scope in of.scope_spans for span in scope.spans]
            self._news.notify_all()

    def trace(self, id: str, names: set[str], seconds: float = 60.0) -> dict[str, Told]:
        """The spans of a trace by name, once all that are named have come. Raises AssertionError."""
        with self._news:
            came = self._news.wait_for(lambda: names <= self._of(id).keys(), seconds)
        assert came, f"of {names} there are {set(self._of(id))}"
        return self._of(id)

    def _of(self, id: str) -> dict[str, Told]:
        return {each.span.name: each for each in self.spans if each.span.trace_id.hex() == id}


@contextmanager
def collecting() -> Iterator[Collector]:
    """One that listens."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            packed = self.headers.get("Content-Encoding") == "gzip"
            assert self.path == "/v1/traces"
            collector.take(gzip.decompress(body) if packed else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """It says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
