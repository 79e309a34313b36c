"""Trails: calls go on with the trace of the event that they tell of, where events are traced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from triplewire.config.tracing import HEADER, TraceParent, Tracer, parse_parents
from triplewire.edge.ports import Entries
from triplewire.edge.workers import Workers


@dataclass(frozen=True)
class Trails:
    """Finds them in the log. Of an event that is kept no more, and where there is no collector, there is none."""

    log: Entries
    traces: Tracer | None
    workers: Workers

    async def of(self, position: int) -> TraceParent | None:
        """The span under which the event at a position was published."""
        return None if self.traces is None else await self.workers.run(self._kept, position)

    @contextmanager
    def call(self, parent: TraceParent | None) -> Iterator[Mapping[str, str]]:
        """A span for as long as a call lasts; and what the call is to say of it."""
        span = None if self.traces is None or parent is None else self.traces.begin("call", str(parent), outward=True)
        if span is None:
            yield {}
            return
        with span:
            yield {HEADER: str(span.parent)}

    def _kept(self, position: int) -> TraceParent | None:
        found = self.log.read(position - 1, position, 1)
        return next(iter(parse_parents(found.column("extensions").to_pylist(), 1)), None)
