"""`/queries`: register, find, list and end continuous queries; their answers are delivered elsewhere.

`ContinuousQueryManager` is pure over the registry port and blocks, so call it from a thread. Handlers raise; the
middleware writes the problem document.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from aiohttp import web

from triplewire.continuous.structures import STRUCTURE, QueryStructure, group_query
from triplewire.http.auth import caller
from triplewire.http.openapi import resource_operations, serves
from triplewire.http.resources import dataflow, documents, query_requests
from triplewire.http.resources.bodies import (
    JSON,
    SUBSCRIPTION_BODY_BYTES,
    ResourcePage,
    json_response,
    list_page,
    parse_page_size,
    read_body_within,
    read_json,
)
from triplewire.http.resources.dataflow import DataflowGraph, QueryFlow, StreamsRead
from triplewire.http.resources.documents import BULK_LINES
from triplewire.http.resources.query_requests import (
    UNBOUNDED_FIELDS,
    WINDOWED_FIELDS,
    ContinuousQueryRequest,
    StructureCache,
)
from triplewire.http.resources.subscription_requests import BackfillStarts
from triplewire.matching.canonical_form import CACHED_SKELETONS
from triplewire.model import START, format_position, parse_position
from triplewire.model.clock import Clock
from triplewire.model.errors import (
    BadRequest,
    Forbidden,
    InputError,
    InvalidField,
    NotFound,
    QueryLimit,
    TriplewireError,
    Unavailable,
)
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.security import EVERYONE, Policy, Principal, Verb
from triplewire.security.principals import may_see, owner_of
from triplewire.sparql.rspql import Registration, parse_registration
from triplewire.sparql.syntax.queries import QUERY_BYTES
from triplewire.storage.registry.ports import PAGE_ENTRIES, Registry
from triplewire.storage.registry.security import PolicyStore, PolicyVersion
from triplewire.storage.registry.streams import check_stream_name
from triplewire.storage.registry.subscriptions import (
    QUERY,
    queries_owned_by,
    queries_publishing_to,
    query_from_change,
    query_to_value,
)

# thread.

Entry = tuple[str, str, Mapping[str, Any] | None]
FindFigures = Callable[[str], Mapping[str, Any] | None]

_WINDOW_KEYWORD = re.compile(r"\bWINDOW\b", re.IGNORECASE)
"""Without this word there are none, and a query need not be parsed to know it."""


class ContinuousQueryManager:
    """The standing questions across events, as the registry holds them."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        published: Callable[[str], bool],
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        beginnings: BackfillStarts | None = None,
        figures: FindFigures = lambda id: None,
    ) -> None:
        """`published` tells whether anything ever was published to a stream, `figures` what the pipeline says of a
        query. Without `beginnings` no query may ask for the past."""
        self.figures = figures
        self._registry = registry
        self._clock = clock
        self._new_id = new_id
        self._beginnings = beginnings
        self._policies = PolicyStore(registry)
        self._currents = DataflowGraph(registry, published)
        self._structures = StructureCache()
        self._known: set[str] = set()
        """Keys of some structures that are in the registry, where they stay."""

    def register(self, inquiries: Sequence[ContinuousQueryRequest], by: Principal = EVERYONE) -> list[ContinuousQuery]:
        """All of them, or none: raises for the first that cannot be. Each counts every triple whose publish is answered
        after this returns."""
        once = self._once(by)
        drafts = [self._drafted(each, once) for each in inquiries]
        positions = self._registered(drafts, once)
        return [replace(each.query, since=at) for each, at in zip(drafts, positions, strict=True)]

    def register_each(
        self, inquiries: Sequence[ContinuousQueryRequest | TriplewireError], by: Principal = EVERYONE
    ) -> list[tuple[str, int] | TriplewireError]:
        """Those that can be, in one transaction: the id of each and its position; in the place of another is what is
        wrong with it. If the registry fails, none is registered, and each has that error."""
        once = self._once(by)
        drafts = [self._attempted(each, once) for each in inquiries]
        try:
            positions = iter(self._registered([each for each in drafts if isinstance(each, _Draft)], once))
        except TriplewireError as error:
            return [error if isinstance(each, _Draft) else each for each in drafts]
        return [(each.query.id, next(positions)) if isinstance(each, _Draft) else each for each in drafts]

    def find(self, id: str, by: Principal = EVERYONE) -> ContinuousQuery:
        """Raises NotFound for one that is not there or was ended, or is somebody else's."""
        change = self._registry.get(QUERY, id)
        found = None if change is None else query_from_change(change)
        if found is None or not may_see(by, found.owner):
            raise NotFound(f"there is no query {id}")
        return found

    def page(
        self, after: int = START, limit: int = PAGE_ENTRIES, by: Principal = EVERYONE
    ) -> ResourcePage[ContinuousQuery]:
        """Those registered after a position, as far as they are there for who asks."""
        own = None if by.may(Verb.ADMIN) else queries_owned_by(by.name)
        changes, following = list_page(self._registry, QUERY, own, after, limit)
        return ResourcePage([query_from_change(each) for each in changes], following)

    def end(self, id: str, by: Principal = EVERYONE) -> None:
        """From here on nothing counts for it. Raises NotFound for one that is not there, or is somebody else's."""
        self._registry.put(_end_entries(self.find(id, by)))

    def following(self, policy: Policy | None) -> list[Entry]:
        """What is to be put with a change of policy: those end whose owners no longer see all that they read, or may no
        longer publish what they find."""
        gone = (each for each in self._all() if not dataflow.is_authorized(each, policy))
        return [entry for each in gone for entry in _end_entries(each)]

    def settle(self) -> int:
        """Nothing is left to do: who registers while the policy changes is told to come again."""
        return START

    def _all(self) -> Iterator[ContinuousQuery]:
        after: int = START
        while changes := self._registry.list(QUERY, after=after, limit=BULK_LINES):
            yield from map(query_from_change, changes)
            after = changes[-1].position

    def _once(self, by: Principal) -> _RequestContext:
        return _RequestContext(by, self._policies.current(), self._currents.beside(), self._clock.now())

    def _attempted(
        self, inquiry: ContinuousQueryRequest | TriplewireError, once: _RequestContext
    ) -> _Draft | TriplewireError:
        try:
            return inquiry if isinstance(inquiry, TriplewireError) else self._drafted(inquiry, once)
        except (InputError, QueryLimit, NotFound, Forbidden) as error:
            return error

    def _drafted(self, inquiry: ContinuousQueryRequest, once: _RequestContext) -> _Draft:
        registration = parse_registration(inquiry.text) if _WINDOW_KEYWORD.search(inquiry.text) else None
        if registration is None or not registration.windows:
            draft = self._unbounded(inquiry, self._begun(inquiry, once))
        else:
            draft = self._windowed(inquiry, registration, self._begun(inquiry, once))
        once.admit(draft)
        return draft

    def _begun(self, inquiry: ContinuousQueryRequest, once: _RequestContext) -> ContinuousQuery:
        """With what is as it was asked for."""
        return ContinuousQuery(
            id=self._new_id(),
            text=inquiry.text,
            name=inquiry.name,
            streams=inquiry.streams,
            within=inquiry.within,
            span=inquiry.span,
            time=inquiry.time,
            lateness=inquiry.lateness,
            late=inquiry.late,
            owner=owner_of(once.by),
            created=once.now,
        )

    def _unbounded(self, inquiry: ContinuousQueryRequest, query: ContinuousQuery) -> _Draft:
        _check_fields(inquiry, WINDOWED_FIELDS, "windows, and the query has none")
        taken, begins = self._structures.take(inquiry.text), self._begins(inquiry)
        if inquiry.into is not None and taken.form != "construct":
            raise InvalidField(
                "into", "solutions are listened to; what CONSTRUCT or windows find is published into a stream"
            )
        lifted = taken.lifted
        if inquiry.distinct and not lifted.structure.distinct:
            lifted = replace(lifted, structure=replace(lifted.structure, distinct=True))
        asked = group_query(lifted, streams=inquiry.streams, within=inquiry.within, span=inquiry.span, begins=begins)
        made = replace(
            query,
            group=asked.group,
            structure=asked.structure.key,
            constants=asked.constants,
            variables=() if taken.form == "construct" else asked.variables,
            distinct=asked.structure.distinct,
            into=_output_stream(inquiry, query) if taken.form == "construct" else None,
            begins=begins,
        )
        return _Draft(made, inquiry.streams, structure=asked.structure)

    def _windowed(self, inquiry: ContinuousQueryRequest, registration: Registration, query: ContinuousQuery) -> _Draft:
        _check_fields(inquiry, UNBOUNDED_FIELDS, "a query without windows; these say it themselves")
        if (
            registration.name is not None
            and inquiry.name is not None
            and _stream_of_name(inquiry.name) != registration.name
        ):
            raise InvalidField(
                "name", f"the query registers itself as {registration.name}, and name says {inquiry.name}"
            )
        plan = query_requests.plan_registration(inquiry.text, registration)
        if plan.background:
            dataset, published = registration.query.dataset, self._currents.published
            query_requests.check_static_data(inquiry.text, dataset, self._registry, published)
        named = replace(query, name=inquiry.name or registration.name)
        names = plan.names if plan.template is None else ()
        return _Draft(
            replace(named, into=_output_stream(inquiry, named), variables=names), plan.streams, plan.background
        )

    def _begins(self, inquiry: ContinuousQueryRequest) -> int | None:
        if inquiry.begins is None:
            return None
        if self._beginnings is None:
            raise InvalidField("from", "from is not possible here: no events are kept")
        return self._beginnings.position(inquiry.begins)

    def _registered(self, drafts: Sequence[_Draft], once: _RequestContext) -> list[int]:
        """The positions of the drafts, which are queries now."""
        structures = {each.structure.key: each.structure for each in drafts if each.structure is not None}
        missing = [*self._missing(structures)]
        entries = [*missing, *((QUERY, each.query.id, query_to_value(each.query)) for each in drafts)]
        beside = (entry for each in drafts for entry in each.beside())
        positions = self._registry.put([*entries, *beside])[len(missing) : len(entries)]
        self._remember(structures)
        try:
            self._check_again(drafts, once)
        except (Unavailable, InvalidField):
            # Nobody knows of them yet.
            self._registry.put([entry for each in drafts for entry in _end_entries(each.query)])
            raise
        return positions

    def _check_again(self, drafts: Sequence[_Draft], once: _RequestContext) -> None:
        """What changed while they were registered may be against them."""
        if drafts and self._policies.current().version != once.enacted.version:
            raise Unavailable("the policy changed while the queries were registered; register them again")
        for each in drafts:
            self._currents.check(each.current)

    def _missing(self, structures: Mapping[str, QueryStructure]) -> Iterator[Entry]:
        for key, structure in structures.items():
            if key not in self._known and self._registry.get(STRUCTURE, key) is None:
                yield STRUCTURE, key, structure.to_value()

    def _remember(self, structures: Mapping[str, QueryStructure]) -> None:
        if len(self._known) > CACHED_SKELETONS:
            self._known = set()
        self._known |= structures.keys()


@dataclass(frozen=True)
class _Draft:
    """A query that is not registered yet, and what it reads."""

    query: ContinuousQuery
    reads: StreamsRead
    background: bool = False
    """Whether it reads what is in no window."""
    structure: QueryStructure | None = None

    @property
    def current(self) -> QueryFlow:
        return QueryFlow(self.query.id, self.reads, self.query.into)

    def beside(self) -> Iterator[Entry]:
        """What is stored beside it, so that it is found."""
        if self.query.owner is not None:
            yield queries_owned_by(self.query.owner.name), self.query.id, {}
        if self.query.into is not None:
            yield queries_publishing_to(self.query.into), self.query.id, {"reads": self.reads}


@dataclass(frozen=True)
class _RequestContext:
    """What is looked up once for many: who asks, by which policy, and what flows where."""

    by: Principal
    enacted: PolicyVersion
    currents: DataflowGraph
    now: int

    def admit(self, draft: _Draft) -> None:
        """Raises Forbidden for what they may not ask, InvalidField for a stream that nobody knows and for a circle."""
        query, current = draft.query, draft.current
        dataflow.check_authorized(self.by, self.enacted.policy, draft.reads, query.into, draft.background)
        self.currents.check(current)
        unknown = self.currents.unknown(current)
        if unknown is not None:
            raise query_requests.unknown_stream(query.text, unknown) if query.windowed else _unknown_stream(unknown)
        if query.into is not None:
            self.currents.fresh.append(current)


def _output_stream(inquiry: ContinuousQueryRequest, query: ContinuousQuery) -> str:
    """The stream that is asked for, or called like the query."""
    return inquiry.into or (f"query-{query.id}" if query.name is None else _stream_of_name(query.name))


def _stream_of_name(name: str) -> str:
    """The last part of a name, as that of a stream. Raises InvalidField."""
    try:
        return check_stream_name(re.split("[/#]", name)[-1])
    except BadRequest as error:
        raise InvalidField("name", f"what is found is published to the stream that name ends in, and {error}") from None


def _check_fields(inquiry: ContinuousQueryRequest, fields: Sequence[str], of: str) -> None:
    for name in fields:
        if name in inquiry.given:
            raise InvalidField(name, f"{name} is said of {of}")


def _unknown_stream(stream: str) -> InvalidField:
    return InvalidField("streams", f"nobody ever published to {stream}, and no other query does")


def _end_entries(query: ContinuousQuery) -> list[Entry]:
    owned: list[Entry] = [] if query.owner is None else [(queries_owned_by(query.owner.name), query.id, None)]
    into: list[Entry] = [] if query.into is None else [(queries_publishing_to(query.into), query.id, None)]
    return [(QUERY, query.id, None), *owned, *into]


# `/queries`: the routes of continuous queries, but for their answers. Errors are raised; whoever serves them says
# them.

_TEXT_TYPES = (resource_operations.SPARQL_TYPE, resource_operations.TEXT_TYPE)


def query_routes(queries: ContinuousQueryManager) -> list[web.RouteDef]:
    served = _QueryRoutes(queries)
    return [
        web.post("/queries", served.register),
        web.get("/queries", served.page),
        web.get("/queries/{id}", served.find),
        web.delete("/queries/{id}", served.end),
    ]


class _QueryRoutes:
    """The registry waits for disks and parsers take their time: in threads."""

    def __init__(self, queries: ContinuousQueryManager) -> None:
        self._queries = queries

    @serves(resource_operations.REGISTER_QUERY)
    async def register(self, request: web.Request) -> web.StreamResponse:
        """A text or an object registers one query, an array all that it holds or none, lines each one or not."""
        if request.content_type == documents.MEDIA_TYPE:
            make = partial(self._queries.register_each, by=caller(request))
            return await documents.bulk_response(
                request, partial(documents.answer_lines, ContinuousQueryRequest.from_json, make)
            )
        if request.content_type in _TEXT_TYPES:
            return await self._one(
                ContinuousQueryRequest.from_text(await _read_text(request), request.query.items()), caller(request)
            )
        given = await read_json(request, SUBSCRIPTION_BODY_BYTES, (JSON, *_TEXT_TYPES, documents.MEDIA_TYPE))
        if not isinstance(given, list):
            return await self._one(ContinuousQueryRequest.from_json(given), caller(request))
        return json_response(
            await self._all([ContinuousQueryRequest.from_json(each) for each in given], caller(request)), status=201
        )

    @serves(resource_operations.QUERIES)
    async def page(self, request: web.Request) -> web.Response:
        cursor = parse_position(request.query.get("cursor", "earliest"))
        page = await asyncio.to_thread(self._queries.page, cursor, parse_page_size(request), caller(request))
        following = None if page.next is None else format_position(page.next)
        return json_response({"queries": [documents.query_document(each) for each in page.things], "next": following})

    @serves(resource_operations.FIND_QUERY)
    async def find(self, request: web.Request) -> web.Response:
        return json_response(await asyncio.to_thread(self._found, request.match_info["id"], caller(request)))

    def _found(self, id: str, by: Principal) -> dict[str, Any]:
        """With what the pipeline tells of it, if it does."""
        found, figures = self._queries.find(id, by), self._queries.figures(id)
        return documents.query_document(found) | ({} if figures is None else {"figures": dict(figures)})

    @serves(resource_operations.END_QUERY)
    async def end(self, request: web.Request) -> web.Response:
        await asyncio.to_thread(self._queries.end, request.match_info["id"], caller(request))
        return web.Response(status=204)

    async def _one(self, inquiry: ContinuousQueryRequest, by: Principal) -> web.Response:
        (made,) = await self._all([inquiry], by)
        return json_response(made, status=201, headers={"Location": f"/queries/{made['id']}"})

    async def _all(self, inquiries: Sequence[ContinuousQueryRequest], by: Principal) -> list[dict[str, Any]]:
        if not inquiries:
            raise BadRequest("the array holds no query")
        return [
            documents.query_document(each) for each in await asyncio.to_thread(self._queries.register, inquiries, by)
        ]


async def _read_text(request: web.Request) -> str:
    body = await read_body_within(request, "the query", QUERY_BYTES)
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the query is not UTF-8 at byte {error.start}") from None
