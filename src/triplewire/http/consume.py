"""Endpoints for consumers: `GET /streams/{stream}`, `/subscriptions/{id}/notifications`, `/queries/{id}/answers`,
`/notifications` for many of them over one connection, and `/events` for pages of the log.

Each finds the subscribable that a request names, checks that the caller may see it, resolves the position to resume
from, and hands it to a transport. A subscription or query of another owner is not found. Clients of a subscription
that give no position get everything that is kept, so that nothing is lost between subscribing and listening.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from aiohttp import web

from triplewire.http.auth import caller
from triplewire.http.delivery.backfill import SubscriptionBackfill
from triplewire.http.delivery.connections import wants_websocket
from triplewire.http.delivery.filtered_events import StreamResolver
from triplewire.http.delivery.leases import Leases
from triplewire.http.delivery.matches import MatchSource, OutboxLanes
from triplewire.http.delivery.options import LingerTimes
from triplewire.http.delivery.replay import (
    NOW,
    Gap,
    ResumePosition,
    ResumeRequest,
    ResumeResolver,
    find_gap,
    parse_resumption,
    resume_parameter,
)
from triplewire.http.delivery.subscriptions import ContinuousQueryCache, query_end_message
from triplewire.http.delivery.topics import LiveTopic, Subscribable, TopicHistory
from triplewire.http.delivery.transports import PAGE_BYTES, Transports
from triplewire.http.formats.messages import ResumeToken
from triplewire.http.openapi import routes_of, serves, stream_operations
from triplewire.http.peers.load_balancing import Redirects
from triplewire.http.ports import ThreadPool
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.matching.visibility import redact_entries
from triplewire.model import END, MATCHED_COLUMNS, START, format_position, parse_position
from triplewire.model.errors import BadRequest, NotFound
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.security import Principal, Verb, visibility_of
from triplewire.security.principals import may_see
from triplewire.storage.log.ports import EdgeLog
from triplewire.storage.registry.security import PolicyStore
from triplewire.storage.registry.streams import check_stream_name

PAGE_EVENTS: Final = 20_000
"""Events in one page of `GET /events`: read and written in some 50 ms, while listeners wait for a reader's thread."""

KINDS = ("subscription", "query", "stream")
ARROW = "application/vnd.apache.arrow.stream"

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class StreamEndpoint:
    """`GET /streams/{stream}`: lets clients listen to streams, from a position in history or from now on."""

    resolver: StreamResolver
    transports: Transports
    resume: ResumeResolver
    linger: LingerTimes
    redirects: Redirects

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.consume)

    @serves(stream_operations.CONSUME)
    async def consume(self, request: web.Request) -> web.StreamResponse:
        """Serve messages until the client goes, all events that are published after the response began included."""
        stream, principal = check_stream_name(request.match_info["stream"]), caller(request)
        arrived = None
        if await self.resolver.visibility(principal) is None:
            # Other clients are not redirected: another edge would not know what they may see.
            await self.redirects.redirect(request, stream)
            arrived = await self.redirects.find_arrival(request, stream)
        resume = parse_resumption(request) if arrived is None else ResumeRequest(position=arrived)
        self.transports.acceptor.check_space()
        subject = await self.subject(stream, resume, principal, request.query.items())
        return await self.transports.serve(request, subject)

    async def subject(
        self,
        stream: str,
        resume: ResumeRequest | None,
        principal: Principal,
        parameters: Iterable[tuple[str, str]] = (),
    ) -> Subscribable[StreamView]:
        """Return a stream, as far as the parameters ask for it and the principal sees it. One that the principal does
        not see is an empty one."""
        visibility = await self.resolver.visibility(principal)
        if visibility is not None and stream not in visibility.streams:
            resume = None
        start = await self.resume.resolve_stream(resume, stream, visibility)
        resolved = await self.resolver.resolve(stream, parameters, start.known_loss, principal)
        return Subscribable(
            f"streams/{stream}",
            resolved.key,
            resolved.topic,
            resolved.history,
            start.after,
            start.earliest,
            linger=self.linger.get(stream),
        )


@dataclass(frozen=True)
class NotificationEndpoint:
    """`GET /subscriptions/{id}/notifications`: lets clients listen to subscriptions."""

    lanes: OutboxLanes
    backfill: SubscriptionBackfill
    transports: Transports
    resume: ResumeResolver
    leases: Leases
    linger: float

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.deliver)

    @serves(stream_operations.NOTIFICATIONS)
    async def deliver(self, request: web.Request) -> web.StreamResponse:
        """Serve messages until the client goes or the subscription ends."""
        resume = parse_resumption(request)
        self.transports.acceptor.check_space()
        subject = await self.subject(request.match_info["id"], resume, caller(request))
        return await self.transports.serve(request, subject)

    async def subject(self, id: str, resume: ResumeRequest | None, principal: Principal) -> Subscribable[int]:
        """Return a subscription. Raises NotFound, also for one of another owner.

        A client that gives no position gets everything that is kept, so that nothing is lost between subscribing and
        listening; and before that the backfill, if the subscription asks for one.
        """
        cache = self.lanes.main.queries
        subscription = await cache.find(id, resuming=_is_resuming(resume))
        if not may_see(principal, subscription.owner):
            raise NotFound(f"there is no subscription {id}")
        start = await self.resume.resolve_subscription(resume, subscription, cache.visibility(subscription))
        versions = partial(cache.versions, subscription.made)
        topic, present = self.lanes.resolve(subscription)
        return Subscribable(
            f"subscriptions/{id}",
            subscription.made,
            topic,
            self.backfill.history(subscription, versions, present),
            start.after,
            start.earliest,
            order=subscription.made,
            linger=self.linger,
            hold=nullcontext if subscription.ttl is None else partial(self.leases.hold, id),
            ended=partial(cache.is_ended, id),
        )


def _is_resuming(resume: ResumeRequest | None) -> bool:
    return resume is not None and resume != ResumeRequest()


@dataclass(frozen=True)
class AnswerEndpoint:
    """`GET /queries/{id}/answers`: lets clients listen to continuous queries.

    Answers of SELECT and ASK without windows come by an outbox, as notifications; those of windows and CONSTRUCT are
    events of the stream that the query publishes into.
    """

    source: MatchSource[ContinuousQueryCache]
    resolver: StreamResolver
    transports: Transports
    resume: ResumeResolver
    linger: LingerTimes

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.answer)

    @serves(stream_operations.QUERY_ANSWERS)
    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Serve messages until the client goes or the query ends."""
        resume = parse_resumption(request)
        self.transports.acceptor.check_space()
        subject = await self.subject(request.match_info["id"], resume, caller(request))
        return await self.transports.serve(request, subject)

    async def subject(self, id: str, resume: ResumeRequest | None, principal: Principal) -> Subscribable[Any]:
        """Return a query. Raises NotFound, also for one of another owner. A client that gives no position gets
        everything that is kept since the query was registered."""
        query = (await self.source.queries.find(id, resuming=_is_resuming(resume))).query
        if not may_see(principal, query.owner):
            raise NotFound(f"there is no query {id}")
        if query.into is None:
            return await self._matched(query, resume)
        return await self._published(query, query.into, resume)

    async def find_ended(self) -> list[ContinuousQuery]:
        """Return the queries that have ended and have published all their answers, and have listeners."""
        listened = [query for query in self.source.queries.ended_queries() if self._has_listeners(query)]
        return [query for query in listened if await self.source.is_settled(query.until)]

    def finish(self, ended: Iterable[ContinuousQuery]) -> None:
        """Tell the listeners of queries that no more answers come. Call it once they have all of them."""
        for query in ended:
            self.resolver.filtered.topic.finish(answer_view(query), query_end_message(query))

    async def _matched(self, query: ContinuousQuery, resume: ResumeRequest | None) -> Subscribable[int]:
        # The answers of history are at the position where the query was registered.
        floor = query.since if query.begins is None else query.since - 1
        start = await self.resume.resolve_since(resume, floor, query.streams)
        return self._subject(query, query.made, self.source.topic, self.source.history(query.made), start)

    async def _published(
        self, query: ContinuousQuery, into: str, resume: ResumeRequest | None
    ) -> Subscribable[StreamView]:
        resume = ResumeRequest(position=query.since) if resume is None else resume
        start = await self.resume.resolve_stream(resume, into)
        resolved = await self.resolver.resolve_answers(into, query.id, start.known_loss)
        return self._subject(query, resolved.key, resolved.topic, resolved.history, start)

    def _subject(
        self, query: ContinuousQuery, key: Key, topic: LiveTopic[Key], history: TopicHistory, start: ResumePosition
    ) -> Subscribable[Key]:
        return Subscribable(
            f"queries/{query.id}",
            key,
            topic,
            history,
            start.after,
            start.earliest,
            # Events come before what they matched, whoever published them.
            order=query.made if query.into is None else START,
            linger=self.linger.get(query.into),
            ended=partial(self.source.queries.is_ended, query.id),
        )

    def _has_listeners(self, query: ContinuousQuery) -> bool:
        return query.into is not None and answer_view(query) in self.resolver.filtered.topic


def answer_view(query: ContinuousQuery) -> StreamView:
    """Return the view of the stream that a query publishes into which has its answers alone."""
    return StreamView(query.into or "", query=query.id)


@dataclass(frozen=True)
class MultiplexEndpoint:
    """`GET /notifications`: many subscriptions, queries and streams over one connection."""

    streams: StreamEndpoint
    notifications: NotificationEndpoint
    answers: AnswerEndpoint
    transports: Transports

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.gather)

    @serves(stream_operations.GATHER)
    async def gather(self, request: web.Request) -> web.StreamResponse:
        """Serve messages of all that the request names, in one order; over a WebSocket a client may name others
        later."""
        named = [(kind, name) for kind in KINDS for name in dict.fromkeys(request.query.getall(kind, []))]
        if not named and not wants_websocket(request):
            raise BadRequest("name what to listen to: ?subscription=, ?query=, ?stream=, each as often as you like")
        most = stream_operations.CONNECTION_SOURCES
        if len(named) > most:
            raise BadRequest(f"{len(named)} are too many for one connection; name at most {most}")
        self.transports.acceptor.check_space()
        resume, token = _parse_resume(resume_parameter(request))
        find = partial(self.find, caller(request))
        subjects = [await find(kind, name, resume) for kind, name in named]
        if token is None:
            begin = min([each.after for each in subjects], default=None)
            token = ResumeToken(await self.transports.acceptor.head() if begin is None else begin)
        return await self.transports.serve_many(request, subjects, token, find)

    async def find(self, principal: Principal, kind: str, name: str, resume: ResumeRequest | None) -> Subscribable[Any]:
        """Return a subscribable by its kind and name. Raises NotFound, Forbidden or BadRequest."""
        if kind == "stream":
            principal.require(Verb.CONSUME, check_stream_name(name))
            return await self.streams.subject(check_stream_name(name), resume, principal)
        principal.require(Verb.SUBSCRIBE)
        if kind == "query":
            return await self.answers.subject(name, resume, principal)
        return await self.notifications.subject(name, resume, principal)


def _parse_resume(text: str | None) -> tuple[ResumeRequest | None, ResumeToken | None]:
    """Return the point from which each subscribable resumes, and the token for the order of all, if it is known."""
    if text is None:
        return None, None
    if ":" not in text and text != NOW:
        token = ResumeToken.parse(text)
        return ResumeRequest(text, position=token.cursor), token
    return ResumeRequest.parsed(text), None


@dataclass(frozen=True)
class EventRange:
    """The events at positions p with `after < p <= end`, of one stream or of all."""

    after: int
    end: int
    stream: str | None


@dataclass(frozen=True)
class EventPageEndpoint:
    """`GET /events`: pages of the log, for programs that read it by ranges of positions. A page is determined by its
    two ends, and by what the principal sees."""

    log: EdgeLog
    policies: PolicyStore
    threads: ThreadPool
    size: int = PAGE_BYTES
    limit: int = PAGE_EVENTS

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.page)

    @serves(stream_operations.READ)
    async def page(self, request: web.Request) -> web.Response:
        """Answer with an Arrow stream of events in order. Its metadata have the position up to which these are all
        (`position`), and the first position that is kept (`earliest`) if some in the range are lost."""
        body = await self.threads.run(self._read, _parse_range(request), caller(request))
        return web.Response(body=body, content_type=ARROW)

    def _read(self, wanted: EventRange, principal: Principal) -> bytes:
        end = min(wanted.end, self.log.head())
        if end <= wanted.after:
            return _write_arrow(self.log.read(START, START, 1), wanted.after, None)
        position = self.log.page_end(wanted.after, end, self.size)
        entries = self.log.read(wanted.after, position, self.limit)
        if entries.num_rows == self.limit:
            position = entries["position"][-1].as_py()
        if wanted.stream is not None:
            entries = entries.filter(pc.equal(entries["stream"], wanted.stream))
        visibility = visibility_of(principal, Verb.CONSUME, self.policies.current().policy)
        entries = redact_entries(entries, visibility)
        return _write_arrow(entries, position, find_gap(self.log, None, wanted.after, wanted.stream))


def _parse_range(request: web.Request) -> EventRange:
    query = request.query
    after = parse_position(query["after"]) if "after" in query else START
    end = parse_position(query["through"]) if "through" in query else END
    return EventRange(after, end, check_stream_name(query["stream"]) if "stream" in query else None)


def _write_arrow(entries: pa.Table, position: int, gap: Gap | None) -> bytes:
    metadata = {"position": format_position(position)}
    metadata |= {} if gap is None else {"earliest": format_position(gap.earliest)}
    table = entries.select(MATCHED_COLUMNS).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written
