"""`/.well-known/mercure`: listen to streams, and publish, as a hub of Mercure lets do."""

from __future__ import annotations

from urllib.parse import parse_qsl

from aiohttp import web

from triplewire.access import EVERYONE, Grant, Principal, Verb
from triplewire.access.grants import ALL
from triplewire.access.topics import pattern_of
from triplewire.config import limits
from triplewire.contract import serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import mercure
from triplewire.edge.intake.inflations import body_of
from triplewire.edge.intake.parcels import Parcel
from triplewire.edge.intake.publications import Publications
from triplewire.edge.mercure.updates import UPDATES, events_of
from triplewire.edge.past.resumptions import Asked
from triplewire.edge.streams import Streams
from triplewire.edge.telling.marks import Mark
from triplewire.edge.telling.receptions import Reception
from triplewire.edge.telling.ways import Ways
from triplewire.edge.workers import Workers
from triplewire.model import format_position
from triplewire.model.errors import BadRequest, TriplewireError, UnknownMediaType
from triplewire.rdf import new_id
from triplewire.rdf.headers import check_header
from triplewire.rdf.ztreamy import parse_event_id
from triplewire.storage.log.ports import Publication, SegmentedLog
from triplewire.storage.registry.streams import check_stream_name

_FORM = "application/x-www-form-urlencoded"
_TOPICS = "a topic is the address of a stream, such as /streams/home, /streams/city-{id}, or *"


class Mercure:
    """Topics are streams; all else is as it is for others who listen and publish."""

    def __init__(
        self,
        streams: Streams,
        reception: Reception,
        ways: Ways,
        log: SegmentedLog,
        publications: Publications,
        workers: Workers,
    ) -> None:
        self._streams = streams
        self._reception = reception
        self._ways = ways
        self._log = log
        self._publications = publications
        self._workers = workers

    def routes(self) -> list[web.RouteDef]:
        address = "/.well-known/mercure"
        return [web.get(address, self.subscribe, allow_head=False), web.post(address, self.publish)]

    @serves(mercure.SUBSCRIBE)
    async def subscribe(self, request: web.Request) -> web.StreamResponse:
        """Updates of all topics, in one order, from the last id or from now on."""
        patterns = [_pattern(topic) for topic in request.query.getall("topic", [])]
        if not patterns:
            raise BadRequest(f"name what to listen to: ?topic=, as often as you like; {_TOPICS}")
        names = await self._named(patterns, caller(request))
        self._reception.check_space()
        text = request.headers.get("Last-Event-ID") or request.query.get("lastEventID")
        asked, mark = (None, None) if text is None else _place(text)
        subjects = [await self._streams.subject(name, asked, caller(request)) for name in names]
        head = min([each.after for each in subjects], default=None)
        if mark is None:
            mark = Mark(await self._reception.head() if head is None else head)
        return await self._ways.told_in(request, subjects, mark, UPDATES)

    async def _named(self, patterns: list[str], principal: Principal) -> list[str]:
        """The streams that topics name. One that is named must be granted; of many, those are told that are."""
        single = [check_stream_name(each) for each in patterns if not each.endswith(ALL)]
        for name in single:
            principal.require(Verb.CONSUME, name)
        wide = [Grant(Verb.CONSUME, each) for each in patterns if each.endswith(ALL)]
        found = await self._workers.run(self._covered, wide, principal) if wide else []
        names = list(dict.fromkeys([*single, *found]))
        if len(names) > limits.GATHERED:
            raise BadRequest(f"more than {limits.GATHERED} streams are too many for one connection; name fewer")
        return names

    def _covered(self, wide: list[Grant], principal: Principal) -> list[str]:
        """Of all streams those that are meant and granted; where they are too many, no more is looked for."""
        found, after = list[str](), ""
        while len(found) <= limits.GATHERED and (volumes := self._log.volumes(after, limits.PAGE)):
            after = volumes[-1].stream
            meant = (each.stream for each in volumes if any(grant.covers(each.stream) for grant in wide))
            found += [name for name in meant if principal.may(Verb.CONSUME, name)]
        return found

    @serves(mercure.PUBLISH)
    async def publish(self, request: web.Request) -> web.Response:
        """An update, stored as an event of the stream that its first topic names. Raises InputError."""
        said = await _form(request)
        if "topic" not in said or "data" not in said:
            raise BadRequest(f"`topic` and `data` must be there; {_TOPICS}")
        stream = check_stream_name(_pattern(said["topic"]))
        caller(request).require(Verb.PUBLISH, stream)
        if "private" in said and caller(request) == EVERYONE:
            raise BadRequest("everybody may listen here, so that nothing is private; grants say who may, with tokens")
        id = parse_event_id(said["id"]) if said.get("id") else None
        type = check_header("type", said["type"]) if said.get("type") else None
        events = events_of(said["data"], id, type, new_id())
        given = frozenset({id} if id else ())
        parcel = Parcel(1, 0, Publication(stream, events, given=given))
        (outcome,) = await self._publications.stored([parcel], caller(request))
        if isinstance(outcome.answer, TriplewireError):
            raise outcome.answer
        return web.Response(text=format_position(outcome.positions[-1]))


async def _form(request: web.Request) -> dict[str, str]:
    """Of a field that is given several times, the first. Raises UnknownMediaType, BodyTooLarge or BadRequest."""
    if request.content_type != _FORM:
        raise UnknownMediaType(request.content_type, (_FORM,))
    body = await body_of(request)
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=limits.GATHERED)
    except ValueError as error:
        raise BadRequest(f"the form cannot be read: {error}") from None
    return dict(reversed(pairs))


def _pattern(topic: str) -> str:
    found = pattern_of(topic)
    if found is None:
        raise BadRequest(f"{topic!r} names no stream; {_TOPICS}")
    return found


def _place(text: str) -> tuple[Asked, Mark]:
    mark = Mark.parse(text)
    return Asked(text, position=mark.cursor), mark
