"""Tracings: spans for what an edge does, where there is a collector to tell. Elsewhere nothing of this is there.

```
request ─▶ span ─▶ events get its `traceparent`, unless they have one ─▶ "log commit" ─▶ … ─▶ "deliver"
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from triplewire.config.limits import TRACED_EVENTS
from triplewire.config.tracing import HEADER, TraceParent, Tracer, current_span, now_ns, parse_parents
from triplewire.contract import operation_of
from triplewire.edge.ports import Commits
from triplewire.model import Event
from triplewire.storage.log.ports import Publication


@dataclass(frozen=True)
class TracedCommits:
    """Commits of which the traces of their events tell."""

    commits: Commits
    traces: Tracer

    async def append(self, publication: Publication) -> Sequence[int]:
        (positions,) = await self.append_each([publication])
        return positions

    async def append_each(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        parent, began = current_span(), now_ns()
        marked = publications if parent is None else [_marked(each, parent) for each in publications]
        positions = await self.commits.append_each(marked)
        events = [event for each in marked for event in each.events]
        self.traces.tell("log commit", _parents(events), began, {"triplewire.events": len(events)})
        return positions


def _marked(publication: Publication, parent: TraceParent) -> Publication:
    return replace(publication, events=[_under(event, parent) for event in publication.events])


def _under(event: Event, parent: TraceParent) -> Event:
    """What a publisher says of one event goes before what it says of the request."""
    if HEADER in event.headers.extensions:
        return event
    extensions = {**event.headers.extensions, HEADER: str(parent)}
    return replace(event, headers=replace(event.headers, extensions=extensions))


def _parents(events: Sequence[Event]) -> list[TraceParent]:
    told = (TraceParent.parsed(event.headers.extensions.get(HEADER)) for event in events[:TRACED_EVENTS])
    return [each for each in dict.fromkeys(told) if each is not None and each.sampled]


def middleware(traces: Tracer) -> Middleware:
    """A span for each request, but for those whose answer has no end."""

    @web.middleware
    async def trace(request: web.Request, handler: Handler) -> web.StreamResponse:
        operation = operation_of(request.match_info.handler)
        if operation is None or operation.tells:
            return await handler(request)
        span = traces.begin(operation.id, request.headers.get(HEADER), _attributes(request))
        if span is None:
            return await handler(request)
        with span:
            return await handler(request)

    return trace


def _attributes(request: web.Request) -> dict[str, str]:
    """The pattern of the address, not the address: what stands in it may be nobody's business."""
    resource = request.match_info.route.resource
    told = {"http.request.method": request.method, "http.route": "" if resource is None else resource.canonical}
    stream = request.match_info.get("stream")
    return told if stream is None else {**told, "triplewire.stream": stream[:128]}


@dataclass(frozen=True)
class Delivered:
    """Tells what feeds hand out."""

    traces: Tracer

    def told(self, extensions: Sequence[str | None], began: int, messages: int) -> None:
        """Events with these headers were handed to listeners, as so many messages."""
        found = parse_parents(extensions, TRACED_EVENTS)
        if found and messages:
            self.traces.tell("deliver", found, began, {"triplewire.messages": messages})
