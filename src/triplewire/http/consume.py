"""Endpoints for consumers: `GET /streams/{stream}`, `/subscriptions/{id}/notifications`, `/queries/{id}/answers`,
`/notifications` for many of them over one connection, and `/events` for pages of the log.

Each finds the subscribable that a request names, checks that the caller may see it, resolves the position to resume
from, and hands it to a transport. A subscription or query of another owner is not found. Clients of a subscription
that give no position get everything that is kept, so that nothing is lost between subscribing and listening.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from aiohttp import web

from triplewire.http.auth import caller
from triplewire.http.delivery.backfill import SubscriptionBackfill
from triplewire.http.delivery.connections import wants_websocket
from triplewire.http.delivery.continuous_queries import ContinuousQueryCache, render_query_end
from triplewire.http.delivery.filtered_events import StreamResolver
from triplewire.http.delivery.matches import MatchSource, OutboxLanes
from triplewire.http.delivery.options import LingerTimes
from triplewire.http.delivery.replay import NOW, Gap, ResumePosition, ResumeRequest, ResumeResolver, find_gap
from triplewire.http.delivery.requests import parse_resumption, resume_parameter
from triplewire.http.delivery.subscriptions import Leases
from triplewire.http.delivery.topics import Acceptor, LiveTopic, Subscribable, TopicHistory
from triplewire.http.delivery.transports import PAGE_BYTES, Transports
from triplewire.http.formats.messages import ResumeToken
from triplewire.http.openapi import resource_operations, serves, stream_operations
from triplewire.http.peers.load_balancing import Redirects
from triplewire.http.ports import EdgeLog, ThreadPool
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.model import END, MATCHED_COLUMNS, START, format_position, parse_position
from triplewire.model.errors import BadRequest, NotFound
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.security import Principal, Verb, visibility_of
from triplewire.security.principals import may_see
from triplewire.security.visibility import redact_entries
from triplewire.storage.registry.security import PolicyStore
from triplewire.storage.registry.streams import check_stream_name

PAGE_EVENTS: Final = 20_000
"""Events in one page of `GET /events`: read and written in some 50 ms, while listeners wait for a reader's thread."""


class StreamEndpoint:
    """Lets clients listen to streams, from a position of the past or from now on."""

    def __init__(
        self,
        taps: StreamResolver,
        reception: Acceptor,
        ways: Transports,
        resumptions: ResumeResolver,
        windows: LingerTimes,
        referrals: Redirects,
    ) -> None:
        self._taps = taps
        self._resumptions = resumptions
        self._reception = reception
        self._ways = ways
        self._windows = windows
        self._referrals = referrals

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/streams/{stream}", self.consume, allow_head=False)]

    @serves(stream_operations.CONSUME)
    async def consume(self, request: web.Request) -> web.StreamResponse:
        """Messages until the client goes. Whatever is published after the answer began is among them."""
        stream, by = check_stream_name(request.match_info["stream"]), caller(request)
        arrived = None
        if await self._taps.sight(by) is None:
            # Others are not led elsewhere, where nobody knows what they see here, and do not come from there.
            await self._referrals.refer(request, stream)
            arrived = await self._referrals.arrived(request, stream)
        asked = parse_resumption(request) if arrived is None else ResumeRequest(position=arrived)
        self._reception.check_space()
        return await self._ways.one(request, await self.subject(stream, asked, by, request.query.items()))

    async def subject(
        self, stream: str, asked: ResumeRequest | None, by: Principal, query: Iterable[tuple[str, str]] = ()
    ) -> Subscribable[StreamView]:
        """A stream, or what of it is asked for and somebody sees, after a place in the past or from now on. Of one that
        is out of sight nothing was ever said."""
        sight = await self._taps.sight(by)
        if sight is not None and stream not in sight.streams:
            asked = None
        start = await self._resumptions.of_stream(asked, stream, sight)
        tapped = await self._taps.of(stream, query, start.told, by)
        name, window = f"streams/{stream}", self._windows.of(stream)
        return Subscribable(name, tapped.key, tapped.room, tapped.history, start.after, start.earliest, window=window)


# `GET /subscriptions/{id}/notifications`: be told.


class NotificationEndpoint:
    """Lets clients listen to subscriptions."""

    def __init__(
        self,
        lanes: OutboxLanes,
        pasts: SubscriptionBackfill,
        reception: Acceptor,
        ways: Transports,
        resumptions: ResumeResolver,
        leases: Leases,
        window: float,
    ) -> None:
        self._lanes = lanes
        self._pasts = pasts
        self._reception = reception
        self._ways = ways
        self._resumptions = resumptions
        self._leases = leases
        self._window = window

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/subscriptions/{id}/notifications", self.deliver, allow_head=False)]

    @serves(resource_operations.NOTIFICATIONS)
    async def deliver(self, request: web.Request) -> web.StreamResponse:
        """Messages until the client goes or the subscription ends."""
        asked = parse_resumption(request)
        self._reception.check_space()
        return await self._ways.one(request, await self.subject(request.match_info["id"], asked, caller(request)))

    async def subject(self, id: str, asked: ResumeRequest | None, by: Principal) -> Subscribable[int]:
        """A subscription. Raises NotFound, also for one of somebody else.

        Who does not say from where gets all that is kept, so nothing is lost between subscribing and listening; and
        before that the past, where the subscription asks for it.
        """
        resuming = asked is not None and asked != ResumeRequest()
        known = self._lanes.main.standing
        subscription = await known.find(id, resuming=resuming)
        if not may_see(by, subscription.owner):
            raise NotFound(f"there is no subscription {id}")
        start = await self._resumptions.of_subscription(asked, subscription, known.sight(subscription))
        versions = partial(known.versions, subscription.made)
        room, present = self._lanes.of(subscription)
        return Subscribable(
            f"subscriptions/{id}",
            subscription.made,
            room,
            self._pasts.history(subscription, versions, present),
            start.after,
            start.earliest,
            order=subscription.made,
            window=self._window,
            held=None if subscription.ttl is None else partial(self._leases.heard, id),
            ended=partial(known.is_ended, id),
        )


# `GET /queries/{id}/answers`: hear what a continuous query finds.
#
# ```
# SELECT, ASK, without windows    the pipeline's third outbox, as notifications
# windows, CONSTRUCT              the stream that the query publishes into: those of its events that are its answers
# ```

Key = TypeVar("Key", bound=Hashable)


class AnswerEndpoint:
    """Lets clients listen to continuous queries."""

    def __init__(
        self,
        matches: MatchSource[ContinuousQueryCache],
        taps: StreamResolver,
        reception: Acceptor,
        ways: Transports,
        resumptions: ResumeResolver,
        windows: LingerTimes,
    ) -> None:
        self._matches = matches
        self._taps = taps
        self._reception = reception
        self._ways = ways
        self._resumptions = resumptions
        self._windows = windows
        matches.standing.heard = self._is_heard

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/queries/{id}/answers", self.answer, allow_head=False)]

    @serves(resource_operations.QUERY_ANSWERS)
    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Messages until the client goes or the query ends."""
        asked = parse_resumption(request)
        self._reception.check_space()
        return await self._ways.one(request, await self.subject(request.match_info["id"], asked, caller(request)))

    async def subject(self, id: str, asked: ResumeRequest | None, by: Principal) -> Subscribable[Any]:
        """A query. Raises NotFound, also for one of somebody else.

        Who does not say from where gets all that is kept since it was registered.
        """
        resuming = asked is not None and asked != ResumeRequest()
        query = await self._matches.standing.find(id, resuming=resuming)
        if not may_see(by, query.owner):
            raise NotFound(f"there is no query {id}")
        return await (self._found(query, asked) if query.into is None else self._published(query, query.into, asked))

    async def leaving(self) -> list[ContinuousQuery]:
        """Those that have ended, and have published all that they will, of which somebody hears the events."""
        heard = [query for query in self._matches.standing.over() if self._is_heard(query)]
        return [query for query in heard if await self._matches.settled(query.until)]

    def see_off(self, leaving: Iterable[ContinuousQuery]) -> None:
        """Tell those who hear the events of queries that nothing more comes; to be said once they heard all of them."""
        for query in leaving:
            self._taps.strains.room.finish(_answer_stream(query), partial(render_query_end, query))

    async def _found(self, query: ContinuousQuery, asked: ResumeRequest | None) -> Subscribable[int]:
        # What the past answers is told where the query was registered.
        floor = query.since if query.begins is None else query.since - 1
        start = await self._resumptions.since(asked, floor, query.streams)
        room, history = self._matches.room, self._matches.history(query.made)
        return self._subject(query, query.made, room, history, start)

    async def _published(
        self, query: ContinuousQuery, into: str, asked: ResumeRequest | None
    ) -> Subscribable[StreamView]:
        start = await self._resumptions.of_stream(ResumeRequest(position=query.since) if asked is None else asked, into)
        tapped = await self._taps.answers(into, query.id, start.told)
        return self._subject(query, tapped.key, tapped.room, tapped.history, start)

    def _subject(
        self, query: ContinuousQuery, key: Key, room: LiveTopic[Key], history: TopicHistory, start: ResumePosition
    ) -> Subscribable[Key]:
        return Subscribable(
            f"queries/{query.id}",
            key,
            room,
            history,
            start.after,
            start.earliest,
            # Events come before what they matched, whoever published them.
            order=query.made if query.into is None else START,
            window=self._windows.of(query.into),
            ended=partial(self._matches.standing.is_ended, query.id),
        )

    def _is_heard(self, query: ContinuousQuery) -> bool:
        return query.into is not None and _answer_stream(query) in self._taps.strains.room


def _answer_stream(query: ContinuousQuery) -> StreamView:
    return StreamView(query.into or "", query=query.id)


# `GET /notifications`: be told of many subscriptions, queries and streams over one connection.

KINDS = ("subscription", "query", "stream")


class MultiplexEndpoint:
    """Brings together what several others let clients listen to."""

    def __init__(
        self,
        streams: StreamEndpoint,
        deliveries: NotificationEndpoint,
        outcomes: AnswerEndpoint,
        reception: Acceptor,
        ways: Transports,
    ) -> None:
        self._streams = streams
        self._outcomes = outcomes
        self._deliveries = deliveries
        self._reception = reception
        self._ways = ways

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/notifications", self.gather, allow_head=False)]

    @serves(stream_operations.GATHER)
    async def gather(self, request: web.Request) -> web.StreamResponse:
        """Messages of all that the request names, in one order; over a WebSocket a client may name others later."""
        named = [(kind, name) for kind in KINDS for name in dict.fromkeys(request.query.getall(kind, []))]
        if not named and not wants_websocket(request):
            raise BadRequest("name what to listen to: ?subscription=, ?query=, ?stream=, each as often as you like")
        if len(named) > stream_operations.CONNECTION_SOURCES:
            raise BadRequest(
                f"{len(named)} are too many for one connection; name at most {stream_operations.CONNECTION_SOURCES}"
            )
        self._reception.check_space()
        asked, mark = _parse_resume(resume_parameter(request))
        find = partial(self.find, caller(request))
        subjects = [await find(kind, name, asked) for kind, name in named]
        if mark is None:
            begin = min([each.after for each in subjects], default=None)
            mark = ResumeToken(await self._reception.head() if begin is None else begin)
        return await self._ways.many(request, subjects, mark, find)

    async def find(self, by: Principal, kind: str, name: str, asked: ResumeRequest | None) -> Subscribable[Any]:
        """A subject by its kind and name. Raises NotFound, Forbidden or BadRequest."""
        if kind == "stream":
            by.require(Verb.CONSUME, check_stream_name(name))
            return await self._streams.subject(check_stream_name(name), asked, by)
        by.require(Verb.SUBSCRIBE)
        if kind == "query":
            return await self._outcomes.subject(name, asked, by)
        return await self._deliveries.subject(name, asked, by)


def _parse_resume(text: str | None) -> tuple[ResumeRequest | None, ResumeToken | None]:
    """After what to tell each of them, and the mark that stands for it in the order of all, where it is known."""
    if text is None:
        return None, None
    if ":" not in text and text != NOW:
        mark = ResumeToken.parse(text)
        return ResumeRequest(text, position=mark.cursor), mark
    return ResumeRequest.parsed(text), None


# `GET /events`: what the log keeps, a page at a time, for programs that read it in stretches of positions.

ARROW = "application/vnd.apache.arrow.stream"


@dataclass(frozen=True)
class EventRange:
    """The events at positions p with `after < p <= upto`, of one stream or of all."""

    after: int
    upto: int
    stream: str | None


class EventPageEndpoint:
    """Reads the log for who asks, boundedly much at a time. What a page holds is fixed by its two ends, and by what
    they see who ask."""

    def __init__(self, log: EdgeLog, policies: PolicyStore, workers: ThreadPool, size: int = PAGE_BYTES) -> None:
        self._log = log
        self._policies = policies
        self._workers = workers
        self._size = size

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/events", self.page, allow_head=False)]

    @serves(stream_operations.READ)
    async def page(self, request: web.Request) -> web.Response:
        """An Arrow stream of events in order. Its metadata tells up to where that is all of them (`reached`), and the
        first position that is kept (`earliest`) if some that were asked for are gone."""
        body = await self._workers.run(self._read, _parse_range(request), caller(request))
        return web.Response(body=body, content_type=ARROW)

    def _read(self, wanted: EventRange, asking: Principal) -> bytes:
        upto = min(wanted.upto, self._log.head())
        if upto <= wanted.after:
            return _write_arrow(self._log.read(START, START, 1), wanted.after, None)
        reached = self._log.reach(wanted.after, upto, self._size)
        entries = self._log.read(wanted.after, reached, PAGE_EVENTS)
        if entries.num_rows == PAGE_EVENTS:
            reached = entries["position"][-1].as_py()
        if wanted.stream is not None:
            entries = entries.filter(pc.equal(entries["stream"], wanted.stream))
        sight = visibility_of(asking, Verb.CONSUME, self._policies.current().policy)
        entries = entries if sight is None else redact_entries(sight, entries)
        return _write_arrow(entries, reached, find_gap(self._log, None, wanted.after, wanted.stream))


def _parse_range(request: web.Request) -> EventRange:
    asked = request.query
    after = parse_position(asked["after"]) if "after" in asked else START
    upto = parse_position(asked["upto"]) if "upto" in asked else END
    return EventRange(after, upto, check_stream_name(asked["stream"]) if "stream" in asked else None)


def _write_arrow(entries: pa.Table, reached: int, gap: Gap | None) -> bytes:
    told = {"reached": format_position(reached)} | ({} if gap is None else {"earliest": format_position(gap.earliest)})
    table = entries.select(MATCHED_COLUMNS).replace_schema_metadata(told)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written
