"""Distributed tracing: W3C Trace Context headers, and spans that are exported by OTLP over HTTP.

OpenTelemetry is imported only where a collector is configured.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

import orjson

TRACED_EVENTS: Final = 128
"""Events of one batch, or of one pass of a live source, that get spans: a collector needs examples. A batch of 20,000
traced events would be 20,000 spans at once, of which the queue of the exporter holds 2,048."""


HEADER = "traceparent"

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 0x01


@dataclass(frozen=True)
class TraceParent:
    """A span. Nothing is told of what happens under one that is not sampled."""

    trace: int
    span: int
    sampled: bool = True

    def __str__(self) -> str:
        return f"00-{self.trace:032x}-{self.span:016x}-{int(self.sampled):02x}"

    @classmethod
    def parsed(cls, text: str | None) -> TraceParent | None:
        """None for a header that is none: who sends it is not refused for that (W3C Trace Context 4.3)."""
        found = _FORM.fullmatch(text or "")
        if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
            return None
        trace, span = int(found[2], 16), int(found[3], 16)
        return cls(trace, span, bool(int(found[4], 16) & _SAMPLED)) if trace and span else None


_CURRENT: ContextVar[TraceParent | None] = ContextVar("parent", default=None)


def current_span() -> TraceParent | None:
    """Under which span the running task works; for logs."""
    return _CURRENT.get()


@contextmanager
def enter_span(parent: TraceParent) -> Iterator[None]:
    """For as long as it lasts, the running task works under a span."""
    token = _CURRENT.set(parent)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def parse_parents(extensions: Iterable[str | None], most: int) -> list[TraceParent]:
    """The parents in the headers of events, as the log stores them: each once, sampled ones only, at most `most`."""
    found: dict[TraceParent, None] = {}
    for text in extensions:
        if text is not None and HEADER in text and len(found) < most:
            parent = TraceParent.parsed(orjson.loads(text).get(HEADER))
            if parent is not None and parent.sampled:
                found[parent] = None
    return list(found)


Attributes = Mapping[str, str | int]

now_ns = time.time_ns

Traced = Callable[[Sequence[str | None], int, int], None]
"""Hears of the headers of events, when they began to be handed out, and as how many messages."""


class Tracer:
    """Sends spans in the background. A collector that does not answer loses them, and costs nobody else anything."""

    def __init__(self, endpoint: str, service: str, ratio: float) -> None:
        """`endpoint` is where a collector takes OTLP over HTTP, such as http://localhost:4318; `ratio` of what begins
        here is told."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

        resource = Resource.create({"service.name": f"triplewire-{service}", "service.namespace": "triplewire"})
        self._provider = TracerProvider(
            resource=resource, sampler=ParentBased(TraceIdRatioBased(ratio)), shutdown_on_exit=False
        )
        exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=5)
        self._provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1_000))
        self._tracer = self._provider.get_tracer("triplewire")

    def begin(
        self, name: str, parent: str | None, attributes: Attributes | None = None, *, outward: bool = False
    ) -> Span | None:
        """A span under one that somebody else began, or the first of a trace; None for what is not sampled. One of a
        request, or, `outward`, of a call that is made."""
        from opentelemetry.trace import SpanKind

        above = _context(TraceParent.parsed(parent))
        kind = SpanKind.CLIENT if outward else SpanKind.SERVER
        span = self._tracer.start_span(name, above, kind, attributes)
        return Span(span) if span.is_recording() else None

    def tell(
        self,
        name: str,
        parents: Sequence[TraceParent],
        began: int,
        attributes: Attributes | None = None,
        links: Iterable[TraceParent] = (),
    ) -> list[TraceParent]:
        """Under each of some spans: what was begun then, in nanoseconds, and has just ended."""
        ended, others = now_ns(), [_link(each) for each in links]
        found = []
        for parent in parents:
            span = self._tracer.start_span(
                name, _context(parent), attributes=attributes, links=others, start_time=began
            )
            span.end(ended)
            found.append(_parent(span.get_span_context()))
        return found

    def batch(
        self, name: str, parents: Sequence[TraceParent], began: int, attributes: Attributes | None = None
    ) -> None:
        """A span for work on many events at once: one in the trace of each, linked with the batch's own span, which is
        linked with all of them."""
        span = self._tracer.start_span(
            f"{name} batch",
            _context(parents[0]),
            attributes=attributes,
            links=[_link(e) for e in parents],
            start_time=began,
        )
        self.tell(name, parents, began, attributes, links=[_parent(span.get_span_context())])
        span.end(now_ns())

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


class Span(AbstractContextManager["Span"]):
    """One that has begun; it ends with the block, and logs that are written meanwhile tell of it."""

    def __init__(self, span: Any) -> None:  # noqa: ANN401 - of a library that is not imported here
        self._span = span
        self.parent = _parent(span.get_span_context())
        self._under = enter_span(self.parent)

    def __enter__(self) -> Span:
        self._under.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """An error is told by its class: its words may hold what a client sent."""
        self._under.__exit__(kind, error, trace)
        if kind is not None:
            self._span.set_attribute("error.type", kind.__name__)
        self._span.end()


def _context(parent: TraceParent | None) -> Any:  # noqa: ANN401 - of a library that is not imported here
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    # An empty one where there is no parent: nothing is taken from wherever this happens to run.
    return Context() if parent is None else set_span_in_context(NonRecordingSpan(_span_context(parent)), Context())


def _link(parent: TraceParent) -> Any:  # noqa: ANN401 - of a library that is not imported here
    from opentelemetry.trace import Link

    return Link(_span_context(parent))


def _span_context(parent: TraceParent) -> Any:  # noqa: ANN401 - of a library that is not imported here
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(parent.trace, parent.span, is_remote=True, trace_flags=TraceFlags(int(parent.sampled)))


def _parent(context: Any) -> TraceParent:  # noqa: ANN401 - of a library that is not imported here
    return TraceParent(context.trace_id, context.span_id, bool(context.trace_flags.sampled))


def open_tracer(endpoint: str, service: str, ratio: float) -> Tracer | None:
    """None where there is nobody to send to."""
    return Tracer(endpoint, service, ratio) if endpoint else None
