"""SHACL validation of published events, and `/streams/{stream}/shapes`, where the shapes of a stream are set.

Events of streams without shapes pass at the price of a look-up. The validator runs in a process of its own, which is
started with the first question and again after it was killed; questions are answered in order, so that events keep
theirs. Handlers raise; the middleware writes the problem document.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import orjson
from aiohttp import web

from triplewire.config.workers import FrameKind, WorkerCommand, WorkerProcess, decode_error
from triplewire.http.openapi import resource_operations, serves
from triplewire.http.publish.items import PublishItem, split_items
from triplewire.http.resources.bodies import json_response
from triplewire.model import Event, format_position
from triplewire.model.errors import (
    BadRequest,
    BodyTooLarge,
    InputError,
    NotAcceptable,
    ShapeViolation,
    TriplewireError,
    Unavailable,
)
from triplewire.model.events import parse_payload
from triplewire.rdf import SYNTAXES, TURTLE, find_syntax, negotiate, to_ntriples
from triplewire.rdf.serializer import find_frame, write_fragment
from triplewire.rdf.shacl import parse_shapes
from triplewire.rdf.shacl_worker import SHAPES_BYTES
from triplewire.storage.log.ports import Publication
from triplewire.storage.registry.streams import ShapesCache, StreamShapes, ValidationMode, check_stream_name

SHAPES_EVENTS: Final = 100
"""Events that are judged for one question: some milliseconds each."""

SHAPES_SECONDS: Final = 10.0
"""For one question to the process that judges; one that takes longer is killed with it. A pattern may backtrack for
years."""

SHAPES_WAITING: Final = 64
"""Bodies that wait to be judged, of at most `BODY_BYTES` each."""


ShaclVerdict = dict[str, Any] | None
"""The violations of an event; None for one that conforms."""
VALIDATOR_COMMAND = WorkerCommand((sys.executable, "-m", "triplewire.rdf.shacl_worker"))


class ShaclValidator:
    """One worker process, started with the first request and again after it was killed.

    Requests are answered in order, so that events stay in theirs.
    """

    def __init__(self, seconds: float = SHAPES_SECONDS, command: WorkerCommand = VALIDATOR_COMMAND) -> None:
        """`seconds` limits one request."""
        self.seconds = seconds
        self._command = command
        self._process: WorkerProcess | None = None
        self._loaded: set[str] = set()
        self._lock = asyncio.Lock()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.alive

    async def check(self, shapes: str) -> None:
        """Raises InputError for shapes that are not valid, Unavailable if validation takes too long."""
        await self._ask("", shapes, [])

    async def judge(self, key: str, shapes: str, events: Sequence[str]) -> list[ShaclVerdict]:
        """Validate the texts of events against shapes, which have a key of their own. Raises Unavailable."""
        verdicts: list[ShaclVerdict] = []
        for start in range(0, len(events), SHAPES_EVENTS):
            verdicts += await self._ask(key, shapes, events[start : start + SHAPES_EVENTS])
        return verdicts

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.end()

    async def _ask(self, key: str, shapes: str, events: Sequence[str]) -> list[ShaclVerdict]:
        async with self._lock:
            try:
                process = await self._start()
                known = bool(key) and key in self._loaded
                self._loaded.add(key)
                request = {"key": key, "shapes": None if known else shapes, "events": events}
                process.send(FrameKind.REQUEST, request)
                async with asyncio.timeout(self.seconds):
                    kind, payload = await process.receive()
            except (OSError, EOFError, TimeoutError):
                await self.close()
                late = f"validation against the shapes took more than {self.seconds:g} s; use simpler ones"
                raise Unavailable(late) from None
            except BaseException:
                await asyncio.shield(self.close())  # its answer would be taken for another's
                raise
        if kind is FrameKind.ERROR:
            self._loaded.discard(key)
            raise decode_error(payload)
        verdicts: list[ShaclVerdict] = orjson.loads(payload)["verdicts"]
        return verdicts

    async def _start(self) -> WorkerProcess:
        if self._process is None or not self.running:
            await self.close()
            self._loaded = set()
            self._process = await WorkerProcess.start(self._command)
        return self._process


SHAPES_HEADER = "Shapes"
"""Says of an event that it does not conform. Whoever publishes cannot say it."""


class ShapeGate:
    """What is published must pass it. In a stream whose mode is `refuse` a parcel passes if all its events conform; in
    one whose mode is `mark` all pass, and those that do not conform say so."""

    def __init__(self, shapes: ShapesCache, judges: ShaclValidator) -> None:
        self.shapes = shapes
        self.judges = judges
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def judged(self, parcels: Sequence[PublishItem]) -> Sequence[PublishItem]:
        """The parcels, of which some may be refused now. Whoever comes first is through first, so that what one
        publisher sends stays in its order."""
        if not any(self._concerns(each.publication) for each in parcels):
            return parcels
        async with self._in_turn():
            return [await self._parcel(each) for each in split_items(parcels)]

    async def publication(self, given: Publication) -> Publication:
        """One publication. Raises ShapeViolation, or Unavailable where that is not found out."""
        if not self._concerns(given):
            return given
        async with self._in_turn():
            return await self._publication(given)

    def _concerns(self, given: Publication | None) -> bool:
        if given is None or not self.shapes:
            return False
        streams = (given.stream,) if isinstance(given.stream, str) else given.stream
        return any(self.shapes.of(each) is not None for each in streams)

    @asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        if self._waiting >= SHAPES_WAITING:
            raise Unavailable(f"{self._waiting} bodies wait to be judged by shapes; try again later")
        self._waiting += 1
        try:
            async with self._turn:
                yield
        finally:
            self._waiting -= 1

    async def _publication(self, given: Publication) -> Publication:
        streams = [given.stream] * len(given.events) if isinstance(given.stream, str) else list(given.stream)
        events = list(given.events)
        for stream in dict.fromkeys(streams):
            shaped = self.shapes.of(stream)
            if shaped is not None:
                places = [place for place, each in enumerate(streams) if each == stream]
                for place, event in zip(places, await self._events(shaped, [events[n] for n in places]), strict=True):
                    events[place] = event
        return replace(given, events=events)

    async def _parcel(self, parcel: PublishItem) -> PublishItem:
        if not isinstance(parcel.found, Publication):
            return parcel
        try:
            return replace(parcel, found=await self._publication(parcel.found))
        except TriplewireError as error:
            return replace(parcel, found=error)

    async def _events(self, shaped: StreamShapes, events: Sequence[Event]) -> list[Event]:
        try:
            verdicts = await self.judges.judge(shaped.key, shaped.text, [each.text for each in events])
        except (Unavailable, InputError):
            if shaped.mode is ValidationMode.REFUSE:
                raise
            return [_mark_event(each, "undecided") for each in events]
        return [_apply_verdict(shaped, event, verdict) for event, verdict in zip(events, verdicts, strict=True)]


def _apply_verdict(shaped: StreamShapes, event: Event, verdict: ShaclVerdict) -> Event:
    # What is carried is no RDF, and has no shape.
    if verdict is None or parse_payload(event.id, event.text) is not None:
        return _mark_event(event, None)
    if shaped.mode is ValidationMode.REFUSE:
        raise ShapeViolation(event.id, shaped.stream, verdict["violations"], verdict["results"], verdict["report"])
    return _mark_event(event, f"violated {verdict['violations']}")


def _mark_event(event: Event, mark: str | None) -> Event:
    """The event with its mark, or without what its publisher may have put in its place."""
    kept = {name: value for name, value in event.headers.extensions.items() if name.lower() != SHAPES_HEADER.lower()}
    if mark is None and len(kept) == len(event.headers.extensions):
        return event
    extensions = kept if mark is None else {**kept, SHAPES_HEADER: mark}
    return replace(event, headers=replace(event.headers, extensions=extensions))


# `/streams/{stream}/shapes`: the routes of shapes. Errors are raised; whoever serves them says them.

CheckShapes = Callable[[str], Awaitable[None]]


def shape_routes(shapes: ShapesCache, check: CheckShapes) -> list[web.RouteDef]:
    """`check` raises InputError for shapes that make no sense."""
    served = _ShapeRoutes(shapes, check)
    return [
        web.put("/streams/{stream}/shapes", served.put),
        web.get("/streams/{stream}/shapes", served.find),
        web.delete("/streams/{stream}/shapes", served.remove),
    ]


class _ShapeRoutes:
    """Parsers take their time, and the registry waits for disks: in threads."""

    def __init__(self, shapes: ShapesCache, check: CheckShapes) -> None:
        self._shapes = shapes
        self._check = check

    @serves(resource_operations.PUT_SHAPES)
    async def put(self, request: web.Request) -> web.Response:
        """In place of those that the stream had."""
        stream, mode = check_stream_name(request.match_info["stream"]), _parse_mode(request)
        syntax = find_syntax(request.headers.get("Content-Type"))
        if (request.content_length or 0) > SHAPES_BYTES:
            raise BodyTooLarge("the shapes", SHAPES_BYTES)
        text = await asyncio.to_thread(parse_shapes, await request.read(), syntax)
        await self._check(text)
        made = await asyncio.to_thread(self._shapes.put, stream, mode, text)
        told = {
            "stream": stream,
            "mode": mode.value,
            "version": format_position(made.version),
            "triples": text.count("\n") + 1,
        }
        return json_response(told, headers={"Location": f"/streams/{stream}/shapes"})

    @serves(resource_operations.FIND_SHAPES)
    async def find(self, request: web.Request) -> web.Response:
        """As RDF; the header `Shapes-Mode` says what becomes of what does not conform."""
        found = await asyncio.to_thread(self._shapes.find, check_stream_name(request.match_info["stream"]))
        accept = ",".join(request.headers.getall("Accept", ()))
        syntax = negotiate(accept, TURTLE)
        if syntax is None:
            raise NotAcceptable(accept, tuple(each.media_type for each in SYNTAXES))
        around = find_frame(syntax)
        body = around.head + await asyncio.to_thread(write_fragment, _shape_lines(found), syntax) + around.tail
        headers = {"ETag": f'"{format_position(found.version)}"', "Vary": "Accept", "Shapes-Mode": found.mode.value}
        return web.Response(body=body, content_type=syntax.media_type, headers=headers)

    @serves(resource_operations.REMOVE_SHAPES)
    async def remove(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._shapes.remove, check_stream_name(request.match_info["stream"]))
        return web.Response(status=204)


def _shape_lines(shaped: StreamShapes) -> bytes:
    return to_ntriples(shaped.text).encode()


def _parse_mode(request: web.Request) -> ValidationMode:
    given = request.query.get("mode", ValidationMode.REFUSE.value)
    try:
        return ValidationMode(given)
    except ValueError:
        raise BadRequest(f"mode must be {' or '.join(ValidationMode)}, not {given[:60]!r}") from None
