"""`POST /streams/{stream}` and `POST /events`: publish."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from aiohttp import web
from aiohttp.hdrs import CONTENT_TYPE

from triplewire.access import Principal, Verb
from triplewire.config import limits
from triplewire.config.metrics import Metrics
from triplewire.contract import serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import publishing
from triplewire.edge.feeds.views import Views
from triplewire.edge.intake.doors import Arrival, arrival, delivery
from triplewire.edge.intake.inflations import body_of
from triplewire.edge.intake.parcels import Ids, Outcome, Parcel, checked, outcomes, unpacked
from triplewire.edge.intake.permits import permitted
from triplewire.edge.intake.receipts import answer, created, receipt, reported
from triplewire.edge.ports import Commits
from triplewire.edge.workers import Workers
from triplewire.model import Event
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, DuplicateId, InputError, MalformedRdf
from triplewire.rdf import decode, decode_addressed
from triplewire.rdf.cloudevents import parse_binary
from triplewire.rdf.envelopes import MESSAGES, Envelope, decode_cloud_event
from triplewire.rdf.headers import HeaderValues
from triplewire.rdf.messages import declares_messages
from triplewire.rdf.splitting import split_events
from triplewire.storage.log.ports import AppendResult, Publication
from triplewire.storage.registry.streams import check_stream_name

Found = TypeVar("Found")


class Judging(Protocol):
    """Lets through what may be stored."""

    async def judged(self, parcels: Sequence[Parcel]) -> Sequence[Parcel]:
        """The parcels in their order, of which some may be refused now."""

    async def publication(self, given: Publication) -> Publication:
        """What may be stored of a publication, whole. Raises what it is refused for."""


class Publications:
    """Takes bodies in, and answers when their events are durable."""

    def __init__(
        self,
        commits: Commits,
        workers: Workers,
        metrics: Metrics,
        clock: Clock,
        published: Callable[[], None],
        views: Views,
        judged: Judging | None = None,
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
        said = arrival(request)
        body = await body_of(request)
        began = self._clock.ticks()
        parcels = await self.decoded(partial(parcels_of, body, said), len(body), heavy=heavy(said.wrapping))
        results = await self.stored(parcels, caller(request))
        self._metrics.publish_seconds.observe(self._clock.ticks() - began)
        self._metrics.bytes.inc(len(body))
        accept = ",".join(request.headers.getall("Accept", ()))
        return reported(accept, results) or answer({"stream": said.stream}, results)

    @serves(publishing.PUBLISH_ADDRESSED)
    async def publish_addressed(self, request: web.Request) -> web.Response:
        """The same for events that say their streams and headers themselves, by triples outside of their graphs. All
        are stored, or none."""
        said = delivery(request)
        body = await body_of(request)
        began = self._clock.ticks()
        found = await self.decoded(partial(decode_addressed, body, said.syntax), len(body))
        streams, events = [_stream(each, event) for each, event in found], [event for _, event in found]
        for stream in set(streams):
            caller(request).require(Verb.PUBLISH, stream)
        # A history may have an id twice, when the log had let go of the first: with a key it is taken as it is.
        given = frozenset(event.id for event in events) if said.key is None else frozenset[str]()
        publication = Publication(streams, events, said.key, given)
        permit = self._views.permit(caller(request))
        if permit is not None:
            (parcel,) = await self.decoded(partial(permitted, [Parcel(1, 0, publication)], permit), len(body))
            if not isinstance(parcel.found, Publication):
                raise parcel.found
        if self._judging is not None:
            publication = await self._judging.publication(publication)
        positions = checked(await self._commits.append(publication))
        if isinstance(positions, DuplicateId):
            raise positions
        self._told(len(positions))
        self._metrics.publish_seconds.observe(self._clock.ticks() - began)
        self._metrics.bytes.inc(len(body))
        return created(receipt({}, positions, positions.repeated if isinstance(positions, AppendResult) else 0))

    async def stored(self, parcels: Sequence[Parcel], by: Principal) -> list[Outcome]:
        """What became of the parcels of somebody, once what is taken of them is durable. Raises StorageFull or
        Unavailable."""
        permit = self._views.permit(by)
        if permit is not None:
            size = sum(len(each.text) for parcel in parcels if parcel.publication for each in parcel.publication.events)
            parcels = await self.decoded(partial(permitted, parcels, permit), size)
        if self._judging is not None:
            parcels = await self._judging.judged(parcels)
        publications = [each.publication for each in parcels if each.publication is not None]
        answers = await self._commits.append_each(publications) if publications else []
        results = outcomes(parcels, answers)
        self._told(sum(len(each.positions) - each.repeated for each in results))
        return results

    async def decoded(self, decoding: Callable[[], list[Found]], size: int, *, heavy: bool = False) -> list[Found]:
        """What a function makes of a body, in a thread where it is large or the function is `heavy`."""
        if size <= limits.INLINE_BYTES and not heavy:
            return self._decoded(decoding)
        return await self._workers.run(self._decoded, decoding)

    def _decoded(self, decoding: Callable[[], list[Found]]) -> list[Found]:
        began = time.thread_time()
        found = decoding()
        self._metrics.cpu.add("door", time.thread_time() - began)
        return found

    def _told(self, events: int) -> None:
        self._published()
        self._metrics.events.inc(events)


def heavy(wrapping: Envelope | None) -> bool:
    return wrapping is not None and wrapping.heavy


def parcels_of(body: bytes, said: Arrival) -> list[Parcel]:
    """What a body holds: items, or events of a document. With a key they are one parcel, all or nothing."""
    wrapping = said.wrapping or _announced(body, said)
    if wrapping is not None:
        parcels = unpacked(body, wrapping, said.stream, said.headers)
        return parcels if said.key is None else [_together(parcels, said)]
    ids = Ids()
    if said.cloud is not None:
        events = decode_cloud_event(parse_binary(said.cloud, said.cloud.get(CONTENT_TYPE), body), said.headers, ids)
        return [Parcel(1, 0, Publication(said.stream, events, said.key, ids.given(events)))] if events else []
    try:
        events = decode(body, said.syntax, said.headers, event_id=said.event_id, new_id=ids)
    except MalformedRdf:
        parts = split_events(body, said.syntax) if said.key is None else []
        if not parts:
            raise
        return [_part(number, cut.line, cut.data, said) for number, cut in enumerate(parts, 1)]
    return [Parcel(1, 0, Publication(said.stream, events, said.key, ids.given(events), apart=said.key is None))]


def _announced(body: bytes, said: Arrival) -> Envelope | None:
    """For a document that says of itself, not by its media type, that it holds messages."""
    if said.cloud is not None or not declares_messages(body) or said.syntax not in MESSAGES:
        return None
    if said.event_id is not None:
        raise BadRequest("the header Event-Id is said of one event; the body holds messages")
    return MESSAGES[said.syntax]


def _part(number: int, line: int, data: bytes, said: Arrival) -> Parcel:
    ids = Ids()
    try:
        events = decode(data, said.syntax, said.headers, new_id=ids)
    except InputError as error:
        return Parcel(number, line, error)
    return Parcel(number, line, Publication(said.stream, events, given=ids.given(events)))


def _together(parcels: Sequence[Parcel], said: Arrival) -> Parcel:
    """All parcels as one. Raises what one of them is refused for."""
    events, given = list[Event](), set[str]()
    for parcel in parcels:
        if not isinstance(parcel.found, Publication):
            raise parcel.found
        events += parcel.found.events
        given |= set(parcel.found.given)
    if not events:
        raise BadRequest("the body holds no items")
    return Parcel(1, 0, Publication(said.stream, events, said.key, given))


def _stream(said: HeaderValues, event: Event) -> str:
    if said.stream is None:
        raise BadRequest(f"the stream of {event.id} is not said; say it with tw:stream, outside of its graph")
    return check_stream_name(said.stream)
