"""`POST /streams/{stream}` and `POST /events`: publish a body. The response is sent when its events are durable,
with
their positions and the items that were refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import orjson
from aiohttp import web
from aiohttp.hdrs import CONTENT_TYPE

from triplewire.config.metrics import Metrics
from triplewire.http.auth import caller
from triplewire.http.delivery.events import VisibilityCache
from triplewire.http.openapi import serves, stream_operations
from triplewire.http.ports import CommitQueue, ThreadPool
from triplewire.http.problems import MEDIA_TYPE, to_response
from triplewire.http.publish.decompression import read_body
from triplewire.http.publish.items import (
    EventIds,
    ItemResult,
    PublishItem,
    apply_publish_policy,
    check_append,
    pair_results,
    read_items,
)
from triplewire.http.publish.requests import PublishRequest, parse_addressed_request, parse_publish_request
from triplewire.model import Event, format_position
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, DuplicateId, InputError, MalformedRdf, ShapeViolation
from triplewire.rdf import SYNTAXES, decode, decode_addressed
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
"""Items of one body that are refused of which the answer tells why; the others it counts."""

INLINE_BYTES: Final = 16 * 1024
"""A publish body that is parsed on the event loop; a larger one goes to a thread, so that nobody waits for it."""


# Receipts: what publishers are told of a body, once its events are durable.


def receipt_document(told: Mapping[str, Any], positions: Sequence[int], repeated: int = 0) -> dict[str, Any]:
    """Of events that are there now: how many, where the first and the last of them are, and after which position all
    of them were."""
    first, last, most = format_position(positions[0]), format_position(positions[-1]), format_position(max(positions))
    again = {"repeated": repeated} if repeated else {}
    return {**told, "events": len(positions), "first": first, "last": last, "position": most, **again}


def created_response(found: Mapping[str, Any]) -> web.Response:
    return web.Response(status=201, body=orjson.dumps(found), content_type="application/json")


def publish_response(told: Mapping[str, Any], results: Sequence[ItemResult]) -> web.Response:
    """201 if anything of a body was taken, with what was refused; else the first problem, with all of them."""
    refused = [each.told() for each in results if not each.positions]
    shown: dict[str, Any] = {"refused": refused[:REPORTED_REFUSALS], "refusals": len(refused)} if refused else {}
    positions = [position for each in results for position in each.positions]
    if positions:
        return created_response(receipt_document(told, positions, sum(each.repeated for each in results)) | shown)
    if not refused:
        raise BadRequest("the body holds no items")
    return to_response({**refused[0]["problem"], **shown})


def shape_report_response(accept: str, results: Sequence[ItemResult]) -> web.Response | None:
    """For who asks for RDF, where nothing of a body was taken because of the shapes of its stream: the report."""
    error = results[0].answer if results and not any(each.positions for each in results) else None
    if not isinstance(error, ShapeViolation):
        return None
    liked = choose_offer(accept, [(MEDIA_TYPE, "application/json"), *(each.media_types for each in SYNTAXES)])
    if not liked:
        return None
    syntax = SYNTAXES[liked - 1]
    around = find_frame(syntax)
    body = around.head + write_fragment(error.report.encode(), syntax) + around.tail
    return web.Response(status=422, body=body, content_type=syntax.media_type)


Decoded = TypeVar("Decoded")


class PublishGate(Protocol):
    """Lets through what may be stored."""

    async def judged(self, parcels: Sequence[PublishItem]) -> Sequence[PublishItem]:
        """The parcels in their order, of which some may be refused now."""

    async def publication(self, given: Publication) -> Publication:
        """What may be stored of a publication, whole. Raises what it is refused for."""


class PublishEndpoint:
    """Takes bodies in, and answers when their events are durable."""

    def __init__(
        self,
        commits: CommitQueue,
        workers: ThreadPool,
        metrics: Metrics,
        clock: Clock,
        published: Callable[[], None],
        views: VisibilityCache,
        judged: PublishGate | None = None,
    ) -> None:
        """`published` is called after each commit, so that those who listen here need not wait for the next look."""
        self._views = views
        self._commits = commits
        self._workers = workers
        self._metrics = metrics
        self._clock = clock
        self._published = published
        self._judging = judged

    def routes(self) -> list[web.RouteDef]:
        """Publishings has the address of streams."""
        return [web.post("/events", self.publish_addressed)]

    async def publish(self, request: web.Request) -> web.StreamResponse:
        """201 with the positions of the events. One event is stored or refused; of several, each is by itself."""
        said = parse_publish_request(request)
        body = await read_body(request)
        began = self._clock.ticks()
        parcels = await self.decoded(partial(read_body_items, body, said), len(body), heavy=is_heavy(said.wrapping))
        results = await self.stored(parcels, caller(request))
        self._metrics.publish_seconds.observe(self._clock.ticks() - began)
        self._metrics.bytes.inc(len(body))
        accept = ",".join(request.headers.getall("Accept", ()))
        return shape_report_response(accept, results) or publish_response({"stream": said.stream}, results)

    @serves(stream_operations.PUBLISH_ADDRESSED)
    async def publish_addressed(self, request: web.Request) -> web.Response:
        """The same for events that say their streams and headers themselves, by triples outside of their graphs. All
        are stored, or none."""
        said = parse_addressed_request(request)
        body = await read_body(request)
        began = self._clock.ticks()
        found = await self.decoded(partial(decode_addressed, body, said.syntax), len(body))
        streams, events = [_addressed_stream(each, event) for each, event in found], [event for _, event in found]
        for stream in set(streams):
            caller(request).require(Verb.PUBLISH, stream)
        # A history may have an id twice, when the log had let go of the first: with a key it is taken as it is.
        given = frozenset(event.id for event in events) if said.key is None else frozenset[str]()
        publication = Publication(streams, events, said.key, given)
        permit = self._views.permit(caller(request))
        if permit is not None:
            (parcel,) = await self.decoded(
                partial(apply_publish_policy, [PublishItem(1, 0, publication)], permit), len(body)
            )
            if not isinstance(parcel.found, Publication):
                raise parcel.found
        if self._judging is not None:
            publication = await self._judging.publication(publication)
        positions = check_append(await self._commits.append(publication))
        if isinstance(positions, DuplicateId):
            raise positions
        self._told(len(positions))
        self._metrics.publish_seconds.observe(self._clock.ticks() - began)
        self._metrics.bytes.inc(len(body))
        return created_response(
            receipt_document({}, positions, positions.repeated if isinstance(positions, AppendResult) else 0)
        )

    async def stored(self, parcels: Sequence[PublishItem], by: Principal) -> list[ItemResult]:
        """What became of the parcels of somebody, once what is taken of them is durable. Raises StorageFull or
        Unavailable."""
        permit = self._views.permit(by)
        if permit is not None:
            size = sum(len(each.text) for parcel in parcels if parcel.publication for each in parcel.publication.events)
            parcels = await self.decoded(partial(apply_publish_policy, parcels, permit), size)
        if self._judging is not None:
            parcels = await self._judging.judged(parcels)
        publications = [each.publication for each in parcels if each.publication is not None]
        answers = await self._commits.append_each(publications) if publications else []
        results = pair_results(parcels, answers)
        self._told(sum(len(each.positions) - each.repeated for each in results))
        return results

    async def decoded(self, decoding: Callable[[], list[Decoded]], size: int, *, heavy: bool = False) -> list[Decoded]:
        """What a function makes of a body, in a thread where it is large or the function is `heavy`."""
        if size <= INLINE_BYTES and not heavy:
            return self._decoded(decoding)
        return await self._workers.run(self._decoded, decoding)

    def _decoded(self, decoding: Callable[[], list[Decoded]]) -> list[Decoded]:
        began = time.thread_time()
        found = decoding()
        self._metrics.cpu.add("door", time.thread_time() - began)
        return found

    def _told(self, events: int) -> None:
        self._published()
        self._metrics.events.inc(events)


def is_heavy(wrapping: Envelope | None) -> bool:
    return wrapping is not None and wrapping.heavy


def read_body_items(body: bytes, said: PublishRequest) -> list[PublishItem]:
    """What a body holds: items, or events of a document. With a key they are one parcel, all or nothing."""
    wrapping = said.wrapping or _announced_wrapping(body, said)
    if wrapping is not None:
        parcels = read_items(body, wrapping, said.stream, said.headers)
        return parcels if said.key is None else [_as_one_item(parcels, said)]
    ids = EventIds()
    if said.cloud is not None:
        events = decode_cloud_event(parse_binary(said.cloud, said.cloud.get(CONTENT_TYPE), body), said.headers, ids)
        return [PublishItem(1, 0, Publication(said.stream, events, said.key, ids.given(events)))] if events else []
    try:
        events = decode(body, said.syntax, said.headers, event_id=said.event_id, new_id=ids)
    except MalformedRdf:
        parts = split_events(body, said.syntax) if said.key is None else []
        if not parts:
            raise
        return [_salvaged_item(number, cut.line, cut.data, said) for number, cut in enumerate(parts, 1)]
    return [PublishItem(1, 0, Publication(said.stream, events, said.key, ids.given(events), apart=said.key is None))]


def _announced_wrapping(body: bytes, said: PublishRequest) -> Envelope | None:
    """For a document that says of itself, not by its media type, that it holds messages."""
    if said.cloud is not None or not declares_messages(body) or said.syntax not in MESSAGES:
        return None
    if said.event_id is not None:
        raise BadRequest("the header Event-Id is said of one event; the body holds messages")
    return MESSAGES[said.syntax]


def _salvaged_item(number: int, line: int, data: bytes, said: PublishRequest) -> PublishItem:
    ids = EventIds()
    try:
        events = decode(data, said.syntax, said.headers, new_id=ids)
    except InputError as error:
        return PublishItem(number, line, error)
    return PublishItem(number, line, Publication(said.stream, events, given=ids.given(events)))


def _as_one_item(parcels: Sequence[PublishItem], said: PublishRequest) -> PublishItem:
    """All parcels as one. Raises what one of them is refused for."""
    events, given = list[Event](), set[str]()
    for parcel in parcels:
        if not isinstance(parcel.found, Publication):
            raise parcel.found
        events += parcel.found.events
        given |= set(parcel.found.given)
    if not events:
        raise BadRequest("the body holds no items")
    return PublishItem(1, 0, Publication(said.stream, events, said.key, given))


def _addressed_stream(said: HeaderValues, event: Event) -> str:
    if said.stream is None:
        raise BadRequest(f"the stream of {event.id} is not said; say it with tw:stream, outside of its graph")
    return check_stream_name(said.stream)
