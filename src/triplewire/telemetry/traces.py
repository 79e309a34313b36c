"""Traces: spans for a collector, by OTLP over HTTP. What is needed for that is imported only where there is one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from triplewire.telemetry.parents import Parent, under

Attributes = Mapping[str, str | int]

now = time.time_ns

Traced = Callable[[Sequence[str | None], int, int], None]
"""Hears of the headers of events, when they began to be handed out, and as how many messages."""


class Traces:
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

        above = _context(Parent.parsed(parent))
        kind = SpanKind.CLIENT if outward else SpanKind.SERVER
        span = self._tracer.start_span(name, above, kind, attributes)
        return Span(span) if span.is_recording() else None

    def tell(
        self,
        name: str,
        parents: Sequence[Parent],
        began: int,
        attributes: Attributes | None = None,
        links: Iterable[Parent] = (),
    ) -> list[Parent]:
        """Under each of some spans: what was begun then, in nanoseconds, and has just ended."""
        ended, others = now(), [_link(each) for each in links]
        found = []
        for parent in parents:
            span = self._tracer.start_span(
                name, _context(parent), attributes=attributes, links=others, start_time=began
            )
            span.end(ended)
            found.append(_parent(span.get_span_context()))
        return found

    def batch(self, name: str, parents: Sequence[Parent], began: int, attributes: Attributes | None = None) -> None:
        """What was done for many at once: a span in the trace of each, linked with one of its own, which is linked with
        them all."""
        span = self._tracer.start_span(
            f"{name} batch",
            _context(parents[0]),
            attributes=attributes,
            links=[_link(e) for e in parents],
            start_time=began,
        )
        self.tell(name, parents, began, attributes, links=[_parent(span.get_span_context())])
        span.end(now())

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


class Span(AbstractContextManager["Span"]):
    """One that has begun; it ends with the block, and logs that are written meanwhile tell of it."""

    def __init__(self, span: Any) -> None:  # noqa: ANN401 - of a library that is not imported here
        self._span = span
        self.parent = _parent(span.get_span_context())
        self._under = under(self.parent)

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


def _context(parent: Parent | None) -> Any:  # noqa: ANN401 - of a library that is not imported here
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    # An empty one where there is no parent: nothing is taken from wherever this happens to run.
    return Context() if parent is None else set_span_in_context(NonRecordingSpan(_known(parent)), Context())


def _link(parent: Parent) -> Any:  # noqa: ANN401 - of a library that is not imported here
    from opentelemetry.trace import Link

    return Link(_known(parent))


def _known(parent: Parent) -> Any:  # noqa: ANN401 - of a library that is not imported here
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(parent.trace, parent.span, is_remote=True, trace_flags=TraceFlags(int(parent.sampled)))


def _parent(context: Any) -> Parent:  # noqa: ANN401 - of a library that is not imported here
    return Parent(context.trace_id, context.span_id, bool(context.trace_flags.sampled))


def opened(endpoint: str, service: str, ratio: float) -> Traces | None:
    """None where there is nobody to send to."""
    return Traces(endpoint, service, ratio) if endpoint else None
