"""`POST /streams/{stream}` and `POST /events`: publish a body. The response is sent when its events are durable,
with their
positions and the items that were refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from aiohttp import web
from aiohttp.hdrs import CONTENT_TYPE

from triplewire.config.metrics import Metrics
from triplewire.http.auth import caller
from triplewire.http.delivery.events import VisibilityCache
from triplewire.http.openapi import routes_of, serves, stream_operations
from triplewire.http.ports import CommitQueue, ThreadPool
from triplewire.http.problems import MEDIA_TYPE, to_response
from triplewire.http.publish.items import (
    EventIds,
    ItemResult,
    PublishItem,
    apply_publish_policy,
    check_append,
    pair_results,
    read_items,
)
from triplewire.http.publish.requests import PublishRequest, parse_addressed_request, parse_publish_request, read_body
from triplewire.http.publish.validation import ShapeGate
from triplewire.http.resources.bodies import json_response
from triplewire.model import Event, EventColumns, format_position
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, DuplicateId, InputError, MalformedRdf, ShapeViolation
from triplewire.rdf import N_QUADS, SYNTAXES, decode, decode_addressed
from triplewire.rdf.cloudevents import parse_binary
from triplewire.rdf.envelopes import MESSAGES, Envelope, decode_cloud_event
from triplewire.rdf.headers import HeaderValues
from triplewire.rdf.messages import declares_messages
from triplewire.rdf.serializer import find_frame, write_fragment
from triplewire.rdf.splitting import split_events
from triplewire.rdf.syntaxes import choose_offer
from triplewire.security import Principal, Verb
from triplewire.storage.log.ports import AppendResult, Publication
from triplewire.storage.registry.streams import check_stream_name

REPORTED_REFUSALS: Final = 100
"""Refused items of one body that the response describes; others are only counted."""

INLINE_BYTES: Final = 16 * 1024
"""A publish body that is parsed on the event loop; larger ones are parsed in a thread."""


def receipt_document(members: Mapping[str, Any], positions: Sequence[int], repeated: int = 0) -> dict[str, Any]:
    """The receipt of durable events: their number, the first, the last and the greatest position."""
    first, last, most = format_position(positions[0]), format_position(positions[-1]), format_position(max(positions))
    again = {"repeated": repeated} if repeated else {}
    return {**members, "events": len(positions), "first": first, "last": last, "position": most, **again}


def publish_response(members: Mapping[str, Any], results: Sequence[ItemResult]) -> web.Response:
    """201 if any item was accepted, with the refused ones; otherwise the first problem, with all of them."""
    refused = [each.to_json() for each in results if not each.positions]
    shown: dict[str, Any] = {"refused": refused[:REPORTED_REFUSALS], "refusals": len(refused)} if refused else {}
    positions = [position for each in results for position in each.positions]
    if positions:
        return json_response(receipt_document(members, positions, sum(each.repeated for each in results)) | shown, 201)
    if not refused:
        raise BadRequest("the body holds no items")
    return to_response({**refused[0]["problem"], **shown})


def shape_report_response(accept: str, results: Sequence[ItemResult]) -> web.Response | None:
    """The SHACL report, if the client prefers RDF and the shapes of the stream refused the whole body."""
    error = results[0].answer if results and not any(each.positions for each in results) else None
    if not isinstance(error, ShapeViolation):
        return None
    preferred = choose_offer(accept, [(MEDIA_TYPE, "application/json"), *(each.media_types for each in SYNTAXES)])
    if not preferred:
        return None
    syntax = SYNTAXES[preferred - 1]
    around = find_frame(syntax)
    body = around.head + write_fragment(error.report.encode(), syntax) + around.tail
    return web.Response(status=422, body=body, content_type=syntax.media_type)


Decoded = TypeVar("Decoded")


@dataclass(frozen=True)
class PublishEndpoint:
    """Publishes bodies, and responds when their events are durable."""

    commits: CommitQueue
    workers: ThreadPool
    metrics: Metrics
    clock: Clock
    published: Callable[[], None]
    """Called after each commit, so that live sources read at once."""
    views: VisibilityCache
    gate: ShapeGate | None = None

    def routes(self) -> list[web.RouteDef]:
        """`POST /streams/{stream}` is served by StreamingPublish."""
        return routes_of(self.publish_addressed)

    async def publish(self, request: web.Request) -> web.StreamResponse:
        """201 with the positions of the events. Several events are stored or refused one by one."""
        asked = parse_publish_request(request)
        body = await read_body(request)
        began = self.clock.ticks()
        items = await self.decode(partial(read_body_items, body, asked), len(body), heavy=is_heavy(asked.wrapping))
        results = await self.store(items, caller(request))
        self.metrics.publish_seconds.observe(self.clock.ticks() - began)
        self.metrics.bytes.inc(len(body))
        accept = ",".join(request.headers.getall("Accept", ()))
        return shape_report_response(accept, results) or publish_response({"stream": asked.stream}, results)

    @serves(stream_operations.PUBLISH_ADDRESSED)
    async def publish_addressed(self, request: web.Request) -> web.Response:
        """Publish events that state their streams and headers by triples outside of their graphs. All are stored, or
        none."""
        syntax, key = parse_addressed_request(request)
        body = await read_body(request)
        began = self.clock.ticks()
        addressed = await self.decode(partial(decode_addressed, body, syntax), len(body))
        streams, events = [_addressed_stream(*each) for each in addressed], [event for _, event in addressed]
        for stream in set(streams):
            caller(request).require(Verb.PUBLISH, stream)
        # An exported history may have an id twice, if the log had dropped the first: with a key it is stored as it is.
        given = frozenset(event.id for event in events) if key is None else frozenset[str]()
        publication = Publication(streams, events, key, given)
        permit = self.views.permit(caller(request))
        if permit is not None:
            items = [PublishItem(1, 0, publication)]
            (item,) = await self.decode(partial(apply_publish_policy, items, permit), len(body))
            if not isinstance(item.content, Publication):
                raise item.content
        if self.gate is not None:
            publication = await self.gate.validate(publication)
        positions = check_append(await self.commits.append(publication))
        if isinstance(positions, DuplicateId):
            raise positions
        self._count(len(positions))
        self.metrics.publish_seconds.observe(self.clock.ticks() - began)
        self.metrics.bytes.inc(len(body))
        repeated = positions.repeated if isinstance(positions, AppendResult) else 0
        return json_response(receipt_document({}, positions, repeated), 201)

    async def store(self, items: Sequence[PublishItem], by: Principal) -> list[ItemResult]:
        """Store items of a principal; their results, when the accepted ones are durable. Raises StorageFull or
        Unavailable."""
        permit = self.views.permit(by)
        if permit is not None:
            size = sum(len(each.text) for item in items if item.publication for each in item.publication.events)
            items = await self.decode(partial(apply_publish_policy, items, permit), size)
        if self.gate is not None:
            items = await self.gate.validate_items(items)
        publications = [each.publication for each in items if each.publication is not None]
        answers = await self.commits.append_each(publications) if publications else []
        results = pair_results(items, answers)
        self._count(sum(len(each.positions) - each.repeated for each in results))
        return results

    async def decode(self, decoding: Callable[[], list[Decoded]], size: int, *, heavy: bool = False) -> list[Decoded]:
        """Call a decoder, in a thread if the body is large or the decoder `heavy`."""
        if size <= INLINE_BYTES and not heavy:
            return self._decode(decoding)
        return await self.workers.run(self._decode, decoding)

    def _decode(self, decoding: Callable[[], list[Decoded]]) -> list[Decoded]:
        began = time.thread_time()
        decoded = decoding()
        self.metrics.cpu.add("publish", time.thread_time() - began)
        return decoded

    def _count(self, events: int) -> None:
        self.published()
        self.metrics.events.inc(events)


def is_heavy(wrapping: Envelope | None) -> bool:
    return wrapping is not None and wrapping.heavy


def read_body_items(body: bytes, asked: PublishRequest) -> list[PublishItem]:
    """Split a body into items, or events of a document. With an idempotency key they are one item, all or nothing."""
    wrapping = asked.wrapping or _announced_wrapping(body, asked)
    if wrapping is not None:
        items = read_items(body, wrapping, asked.stream, asked.headers)
        return items if asked.key is None else [_as_one_item(items, asked)]
    if (columns := _read_columns(body, asked)) is not None:
        publication = Publication(asked.stream, columns, asked.key, frozenset(columns.ids), apart=asked.key is None)
        return [PublishItem(1, 0, publication)]
    ids = EventIds()
    if asked.cloud is not None:
        events = decode_cloud_event(parse_binary(asked.cloud, asked.cloud.get(CONTENT_TYPE), body), asked.headers, ids)
        return [PublishItem(1, 0, Publication(asked.stream, events, asked.key, ids.given(events)))] if events else []
    try:
        events = decode(body, asked.syntax, asked.headers, event_id=asked.event_id, new_id=ids)
    except MalformedRdf:
        parts = split_events(body, asked.syntax) if asked.key is None else []
        if not parts:
            raise
        return [_salvaged_item(number, cut.line, cut.data, asked) for number, cut in enumerate(parts, 1)]
    return [PublishItem(1, 0, Publication(asked.stream, events, asked.key, ids.given(events), apart=asked.key is None))]


def _read_columns(body: bytes, asked: PublishRequest) -> EventColumns | None:
    """The events of a large body of canonical N-Quads, without a parser; None if it is another."""
    if len(body) <= INLINE_BYTES or asked.syntax is not N_QUADS or asked.cloud or asked.event_id is not None:
        return None
    # Loads the compiler: whoever publishes little does without.
    from triplewire.kernels.nquads import split_canonical

    found = split_canonical(body)
    headers = replace(asked.headers, syntax=N_QUADS.media_type)
    return None if found is None else EventColumns(found.ids, found.texts, headers)


def _announced_wrapping(body: bytes, asked: PublishRequest) -> Envelope | None:
    """The envelope of a document that declares in its text, not by its media type, that it holds messages."""
    if asked.cloud is not None or not declares_messages(body) or asked.syntax not in MESSAGES:
        return None
    if asked.event_id is not None:
        raise BadRequest("the header Event-Id needs a body with one event; this one holds messages")
    return MESSAGES[asked.syntax]


def _salvaged_item(number: int, line: int, data: bytes, asked: PublishRequest) -> PublishItem:
    ids = EventIds()
    try:
        events = decode(data, asked.syntax, asked.headers, new_id=ids)
    except InputError as error:
        return PublishItem(number, line, error)
    return PublishItem(number, line, Publication(asked.stream, events, given=ids.given(events)))


def _as_one_item(items: Sequence[PublishItem], asked: PublishRequest) -> PublishItem:
    """All items as one. Raises the error of the first that is refused."""
    events, given = list[Event](), set[str]()
    for item in items:
        if not isinstance(item.content, Publication):
            raise item.content
        events += item.content.events
        given |= set(item.content.given)
    if not events:
        raise BadRequest("the body holds no items")
    return PublishItem(1, 0, Publication(asked.stream, events, asked.key, given))


def _addressed_stream(asked: HeaderValues, event: Event) -> str:
    if asked.stream is None:
        raise BadRequest(f"the event {event.id} has no stream; state it with tw:stream, outside of its graph")
    return check_stream_name(asked.stream)
