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
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from aiohttp import web

from triplewire.config.workers import FrameKind, WorkerCommand, WorkerProcess, decode_error
from triplewire.http.openapi import resource_operations, routes_of, serves
from triplewire.http.publish.items import PublishItem, split_items
from triplewire.http.resources.bodies import json_response, negotiate_rdf, read_body_within
from triplewire.model import Event, format_position
from triplewire.model.errors import BadRequest, InputError, ShapeViolation, TriplewireError, Unavailable
from triplewire.model.events import parse_payload
from triplewire.rdf import find_syntax, to_ntriples
from triplewire.rdf.serializer import find_frame, write_fragment
from triplewire.rdf.shacl import SHAPES_BYTES, parse_shapes
from triplewire.storage.log.ports import Publication
from triplewire.storage.registry.streams import ShapesCache, StreamShapes, ValidationMode, check_stream_name

SHAPES_EVENTS: Final = 100
"""Events of one request to the validator: some milliseconds each."""

SHAPES_SECONDS: Final = 10.0
"""Seconds for one request to the validator process; a slower one is killed with it. A pattern may backtrack for
years."""

SHAPES_WAITING: Final = 64
"""Bodies that wait for validation, of at most `BODY_BYTES` each."""


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

    async def validate(self, key: str, shapes: str, events: Sequence[str]) -> list[ShaclVerdict]:
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
                await asyncio.shield(self.close())  # its answer would be taken for that of the next request
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
"""The header of events that do not conform. Publishers cannot set it."""


class ShapeGate:
    """Validates published events by the shapes of their streams. In mode `refuse` an item passes if all its events
    conform; in mode `mark` all pass, and events that do not conform get a header."""

    def __init__(self, shapes: ShapesCache, validator: ShaclValidator) -> None:
        self.shapes = shapes
        self.validator = validator
        self._lock = asyncio.Lock()
        self._waiting = 0

    async def validate_items(self, items: Sequence[PublishItem]) -> Sequence[PublishItem]:
        """The items; some may be refused now. Requests are handled in order, so that the events of one publisher keep
        theirs."""
        if not any(self._concerns(each.publication) for each in items):
            return items
        async with self._in_turn():
            return [await self._validate_item(each) for each in split_items(items)]

    async def validate(self, given: Publication) -> Publication:
        """One publication. Raises ShapeViolation, or Unavailable if validation takes too long."""
        if not self._concerns(given):
            return given
        async with self._in_turn():
            return await self._validate(given)

    def _concerns(self, given: Publication | None) -> bool:
        if given is None or not self.shapes:
            return False
        streams = (given.stream,) if isinstance(given.stream, str) else given.stream
        return any(self.shapes.of(each) is not None for each in streams)

    @asynccontextmanager
    async def _in_turn(self) -> AsyncIterator[None]:
        if self._waiting >= SHAPES_WAITING:
            raise Unavailable(f"{self._waiting} bodies wait for validation by shapes; try again later")
        self._waiting += 1
        try:
            async with self._lock:
                yield
        finally:
            self._waiting -= 1

    async def _validate(self, given: Publication) -> Publication:
        streams = [given.stream] * len(given.events) if isinstance(given.stream, str) else list(given.stream)
        events = list(given.events)
        for stream in dict.fromkeys(streams):
            shaped = self.shapes.of(stream)
            if shaped is not None:
                indexes = [index for index, each in enumerate(streams) if each == stream]
                checked = await self._validate_events(shaped, [events[index] for index in indexes])
                for index, event in zip(indexes, checked, strict=True):
                    events[index] = event
        return replace(given, events=events)

    async def _validate_item(self, item: PublishItem) -> PublishItem:
        if not isinstance(item.content, Publication):
            return item
        try:
            return replace(item, content=await self._validate(item.content))
        except TriplewireError as error:
            return replace(item, content=error)

    async def _validate_events(self, shaped: StreamShapes, events: Sequence[Event]) -> list[Event]:
        try:
            verdicts = await self.validator.validate(shaped.key, shaped.text, [each.text for each in events])
        except (Unavailable, InputError):
            if shaped.mode is ValidationMode.REFUSE:
                raise
            return [_mark_event(each, "undecided") for each in events]
        return [_apply_verdict(shaped, event, verdict) for event, verdict in zip(events, verdicts, strict=True)]


def _apply_verdict(shaped: StreamShapes, event: Event, verdict: ShaclVerdict) -> Event:
    # An opaque payload is not RDF, and has no shape.
    if verdict is None or parse_payload(event.id, event.text) is not None:
        return _mark_event(event, None)
    if shaped.mode is ValidationMode.REFUSE:
        raise ShapeViolation(event.id, shaped.stream, verdict["violations"], verdict["results"], verdict["report"])
    return _mark_event(event, f"violated {verdict['violations']}")


def _mark_event(event: Event, mark: str | None) -> Event:
    """The event with its header, or without one that its publisher may have set."""
    before, shapes = event.headers.extensions, SHAPES_HEADER.lower()
    extensions = {name: value for name, value in before.items() if name.lower() != shapes}
    if mark is None and len(extensions) == len(before):
        return event
    extensions |= {} if mark is None else {SHAPES_HEADER: mark}
    return replace(event, headers=replace(event.headers, extensions=extensions))


CheckShapes = Callable[[str], Awaitable[None]]


def shape_routes(shapes: ShapesCache, check: CheckShapes) -> list[web.RouteDef]:
    """`check` raises InputError for invalid shapes."""
    served = _ShapeRoutes(shapes, check)
    return routes_of(served.put, served.find, served.remove)


@dataclass(frozen=True)
class _ShapeRoutes:
    shapes: ShapesCache
    check: CheckShapes

    @serves(resource_operations.PUT_SHAPES)
    async def put(self, request: web.Request) -> web.Response:
        stream, mode = check_stream_name(request.match_info["stream"]), _parse_mode(request)
        syntax = find_syntax(request.headers.get("Content-Type"))
        body = await read_body_within(request, "the shapes", SHAPES_BYTES)
        text = await asyncio.to_thread(parse_shapes, body, syntax)
        await self.check(text)
        shaped = await asyncio.to_thread(self.shapes.put, stream, mode, text)
        document = {
            "stream": stream,
            "mode": mode.value,
            "version": format_position(shaped.version),
            "triples": text.count("\n") + 1,
        }
        return json_response(document, headers={"Location": f"/streams/{stream}/shapes"})

    @serves(resource_operations.FIND_SHAPES)
    async def find(self, request: web.Request) -> web.Response:
        """RDF; the header `Shapes-Mode` is what happens to events that do not conform."""
        shaped = await asyncio.to_thread(self.shapes.find, check_stream_name(request.match_info["stream"]))
        syntax = negotiate_rdf(request)
        around = find_frame(syntax)
        body = (
            around.head
            + await asyncio.to_thread(write_fragment, to_ntriples(shaped.text).encode(), syntax)
            + around.tail
        )
        headers = {"ETag": f'"{format_position(shaped.version)}"', "Vary": "Accept", "Shapes-Mode": shaped.mode.value}
        return web.Response(body=body, content_type=syntax.media_type, headers=headers)

    @serves(resource_operations.REMOVE_SHAPES)
    async def remove(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self.shapes.remove, check_stream_name(request.match_info["stream"]))
        return web.Response(status=204)


def _parse_mode(request: web.Request) -> ValidationMode:
    given = request.query.get("mode", ValidationMode.REFUSE.value)
    try:
        return ValidationMode(given)
    except ValueError:
        raise BadRequest(f"mode must be {' or '.join(ValidationMode)}, not {given[:60]!r}") from None
