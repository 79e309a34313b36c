"""`/.well-known/mercure`: subscribe to streams, and publish, by the Mercure protocol.

Topics are streams. An update in JSON-LD becomes RDF, which matches subscriptions and answers queries, and is
delivered as JSON-LD; any other data is stored and delivered as it came. `type` is kept as a header of the event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import orjson
from aiohttp import web

from triplewire.http.auth import caller
from triplewire.http.consume import StreamEndpoint
from triplewire.http.delivery.replay import ResumeRequest
from triplewire.http.delivery.transports import Transports
from triplewire.http.formats.messages import EntryPieces, ResumeToken
from triplewire.http.formats.sse import SseFormat
from triplewire.http.openapi import routes_of, serves, stream_operations
from triplewire.http.ports import ThreadPool
from triplewire.http.publish.endpoint import PublishEndpoint
from triplewire.http.publish.items import PublishItem
from triplewire.http.publish.requests import read_body
from triplewire.model import Event, EventHeaders, format_position
from triplewire.model.errors import BadRequest, TriplewireError, UnknownMediaType
from triplewire.model.events import BODY, OpaquePayload, parse_payload
from triplewire.rdf import JSON_LD, decode, encode, new_id
from triplewire.rdf.headers import check_header
from triplewire.rdf.ztreamy import parse_event_id
from triplewire.security import EVERYONE, Grant, Principal, Verb
from triplewire.security.principals import ALL_STREAMS, stream_pattern_of
from triplewire.storage.log.ports import Publication, SegmentedLog
from triplewire.storage.registry.ports import PAGE_ENTRIES
from triplewire.storage.registry.streams import check_stream_name

TYPE_HEADER = "mercure-type"
"""The header of an event that holds the type of its update."""
_KEYWORDS = frozenset({"@context", "@id", "@graph", "@type"})


class MercureFormat(SseFormat):
    """Messages without a name, so that a browser hands them to `onmessage`, unless they have a type."""

    name = "mercure"

    def event(self, pieces: EntryPieces, position: int) -> bytes:
        entry = pieces.entry(position)
        kept = orjson.loads(entry["extensions"]) if entry.get("extensions") else {}
        named = f"event: {kept[TYPE_HEADER]}\n" if TYPE_HEADER in kept else ""
        lines = "".join(f"data: {line}\n" for line in _update_data(entry).split("\n"))
        return f"id: {format_position(position)}\n{named}{lines}\n".encode()


MERCURE = MercureFormat()


def parse_update(data: str, id: str | None, type: str | None, new_id: str) -> list[Event]:
    """Parse an update into an event; several if its JSON-LD has several graphs. Raises InputError."""
    headers = EventHeaders(extensions={TYPE_HEADER: type} if type else {})
    media_type = _media_type(data)
    if media_type == JSON_LD.media_type:
        return decode(data.encode(), JSON_LD, headers, event_id=id, new_id=lambda: new_id)
    name = id or new_id
    return [Event(name, OpaquePayload(media_type, data.encode()).text(name), headers)]


def _media_type(data: str) -> str:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return "text/plain"
    first = value[0] if isinstance(value, list) and value else value
    linked = isinstance(first, dict) and not _KEYWORDS.isdisjoint(first)
    return JSON_LD.media_type if linked else "application/json"


def _update_data(entry: Mapping[str, Any]) -> str:
    id, text = entry["event"], entry["text"]
    cargo = parse_payload(id, text) if BODY in text else None
    if cargo is None:
        return encode([Event(id, text)], JSON_LD).decode()
    return cargo.body.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")


_FORM = "application/x-www-form-urlencoded"
_TOPICS = "a topic is the address of a stream, such as /streams/home, /streams/city-{id}, or *"


@dataclass(frozen=True)
class MercureHub:
    """A Mercure hub whose topics are streams."""

    streams: StreamEndpoint
    transports: Transports
    log: SegmentedLog
    publications: PublishEndpoint
    workers: ThreadPool
    most: int = stream_operations.CONNECTION_SOURCES
    """Streams of one connection."""
    page: int = PAGE_ENTRIES
    """Streams that a pattern reads at once."""

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.subscribe, self.publish)

    @serves(stream_operations.MERCURE_SUBSCRIBE)
    async def subscribe(self, request: web.Request) -> web.StreamResponse:
        """Updates of all topics, in the order of events, from the last id or from now on."""
        patterns = [_topic_pattern(topic) for topic in request.query.getall("topic", [])]
        if not patterns:
            raise BadRequest(f"give at least one ?topic=; {_TOPICS}")
        names = await self._find_streams(patterns, caller(request))
        self.transports.acceptor.check_space()
        text = request.headers.get("Last-Event-ID") or request.query.get("lastEventID")
        asked, token = (None, None) if text is None else _parse_resumption(text)
        subjects = [await self.streams.subject(name, asked, caller(request)) for name in names]
        head = min([each.after for each in subjects], default=None)
        if token is None:
            token = ResumeToken(await self.transports.acceptor.head() if head is None else head)
        return await self.transports.serve_format(request, subjects, token, MERCURE)

    async def _find_streams(self, patterns: list[str], principal: Principal) -> list[str]:
        """The streams of topics. A stream that is named must be granted; a pattern covers those that are."""
        single = [check_stream_name(each) for each in patterns if not each.endswith(ALL_STREAMS)]
        for name in single:
            principal.require(Verb.CONSUME, name)
        wide = [Grant(Verb.CONSUME, each) for each in patterns if each.endswith(ALL_STREAMS)]
        found = await self.workers.run(self._find_covered, wide, principal) if wide else []
        names = list(dict.fromkeys([*single, *found]))
        if len(names) > self.most:
            raise BadRequest(f"{len(names)} streams are too many for one connection; name at most {self.most}")
        return names

    def _find_covered(self, wide: list[Grant], principal: Principal) -> list[str]:
        """The streams that patterns cover and grants allow. The search stops above the limit."""
        found, after = list[str](), ""
        while len(found) <= self.most and (volumes := self.log.volumes(after, self.page)):
            after = volumes[-1].stream
            meant = (each.stream for each in volumes if any(grant.covers(each.stream) for grant in wide))
            found += [name for name in meant if principal.may(Verb.CONSUME, name)]
        return found

    @serves(stream_operations.MERCURE_PUBLISH)
    async def publish(self, request: web.Request) -> web.Response:
        """Store an update as an event of the stream of its first topic. Raises InputError."""
        form = await _read_form(request)
        if "topic" not in form or "data" not in form:
            raise BadRequest(f"`topic` and `data` must be there; {_TOPICS}")
        stream = check_stream_name(_topic_pattern(form["topic"]))
        caller(request).require(Verb.PUBLISH, stream)
        if "private" in form and caller(request) == EVERYONE:
            raise BadRequest("this edge has no authentication, so that no update can be private; use tokens and grants")
        id = parse_event_id(form["id"]) if form.get("id") else None
        type = check_header("type", form["type"]) if form.get("type") else None
        events = parse_update(form["data"], id, type, new_id())
        given = frozenset({id} if id else ())
        item = PublishItem(1, 0, Publication(stream, events, given=given))
        (result,) = await self.publications.store([item], caller(request))
        if isinstance(result.answer, TriplewireError):
            raise result.answer
        return web.Response(text=format_position(result.positions[-1]))


async def _read_form(request: web.Request) -> dict[str, str]:
    """The fields of a form; the first of repeated ones. Raises UnknownMediaType, BodyTooLarge or BadRequest."""
    if request.content_type != _FORM:
        raise UnknownMediaType(request.content_type, (_FORM,))
    body = await read_body(request)
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=stream_operations.CONNECTION_SOURCES
        )
    except ValueError as error:
        raise BadRequest(f"the body is not a form: {error}") from None
    return dict(reversed(pairs))


def _topic_pattern(topic: str) -> str:
    found = stream_pattern_of(topic)
    if found is None:
        raise BadRequest(f"{topic!r} is not the topic of a stream; {_TOPICS}")
    return found


def _parse_resumption(text: str) -> tuple[ResumeRequest, ResumeToken]:
    token = ResumeToken.parse(text)
    return ResumeRequest(text, position=token.cursor), token
