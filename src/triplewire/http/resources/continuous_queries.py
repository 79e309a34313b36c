"""`/queries`: register, find, list and end continuous queries; their answers are delivered elsewhere.

`ContinuousQueryManager` is pure over the registry port and blocks, so call it from a thread.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from triplewire.continuous.structures import STRUCTURE, QueryStructure, group_query
from triplewire.http.openapi import resource_operations, routes_of, serves
from triplewire.http.openapi.documents import ContinuousQueryDocument
from triplewire.http.openapi.schemas import ABSENT, present
from triplewire.http.resources import dataflow, query_requests
from triplewire.http.resources import registry_resource as resource
from triplewire.http.resources.bodies import JSON, SUBSCRIPTION_BODY_BYTES, read_json, read_text_within
from triplewire.http.resources.bulk import NDJSON
from triplewire.http.resources.dataflow import DataflowGraph, QueryFlow, StreamsRead
from triplewire.http.resources.query_requests import (
    UNBOUNDED_FIELDS,
    WINDOWED_FIELDS,
    ContinuousQueryRequest,
    StructureCache,
)
from triplewire.http.resources.registry_resource import BulkRegistration, KnownEntries, RegistryEntry, RegistryResource
from triplewire.http.resources.subscription_requests import BackfillStarts, format_start, resolve_start
from triplewire.model import START, errors, format_position
from triplewire.model.clock import Clock, format_timestamp
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.security import EVERYONE, Policy, Principal
from triplewire.security.principals import owner_of
from triplewire.sparql.rspql import Registration, parse_registration
from triplewire.sparql.syntax.queries import QUERY_BYTES
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.security import PolicyStore, PolicyVersion
from triplewire.storage.registry.streams import check_stream_name
from triplewire.storage.registry.subscriptions import (
    QUERY,
    queries_owned_by,
    queries_publishing_to,
    query_from_change,
    query_to_value,
)

FindFigures = Callable[[str], Mapping[str, Any] | None]

_WINDOW_KEYWORD = re.compile(r"\bWINDOW\b", re.IGNORECASE)
"""A query without this word has no windows, and need not be parsed to know that."""


class ContinuousQueryManager(
    RegistryResource[ContinuousQuery],
    BulkRegistration[ContinuousQueryRequest, "_RequestContext", "_Draft", ContinuousQuery],
):
    """Registers, finds and ends continuous queries in the registry."""

    kind = QUERY
    noun = "query"
    from_change = staticmethod(query_from_change)
    owned_by = staticmethod(queries_owned_by)
    refusals = (errors.InputError, errors.QueryLimit, errors.NotFound, errors.Forbidden)

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        published: Callable[[str], bool],
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        starts: BackfillStarts | None = None,
        figures: FindFigures = lambda id: None,
    ) -> None:
        """`published` returns whether a stream ever had events, `figures` the pipeline's statistics of a query.
        Without `starts` queries have no backfill."""
        super().__init__(registry)
        self.figures = figures
        self._clock = clock
        self._new_id = new_id
        self._starts = starts
        self._policies = PolicyStore(registry)
        self._flows = DataflowGraph(registry, published)
        self._texts = StructureCache()
        self._structures = KnownEntries(registry, STRUCTURE)

    def end(self, id: str, by: Principal = EVERYONE) -> None:
        """End a query: later events do not count. Raises NotFound."""
        self._registry.put(_end_entries(self.find(id, by)))

    def following(self, policy: Policy | None) -> list[RegistryEntry]:
        """Entries to put with a policy change: queries end whose owners no longer see all that they read, or may no
        longer publish their answers."""
        gone = (each for each in self.each() if not dataflow.is_authorized(each, policy))
        return [entry for each in gone for entry in _end_entries(each)]

    def settle(self) -> int:
        """Nothing is left to do: a registration during a policy change is refused."""
        return START

    def _context(self, by: Principal) -> _RequestContext:
        return _RequestContext(by, self._policies.current(), self._flows, self._clock.now())

    def _draft(self, request: ContinuousQueryRequest, context: _RequestContext) -> _Draft:
        registration = parse_registration(request.text) if _WINDOW_KEYWORD.search(request.text) else None
        if registration is None or not registration.windows:
            draft = self._unbounded(request, self._begin(request, context))
        else:
            draft = self._windowed(request, registration, self._begin(request, context))
        context.admit(draft)
        return draft

    def _begin(self, request: ContinuousQueryRequest, context: _RequestContext) -> ContinuousQuery:
        return ContinuousQuery(
            id=self._new_id(),
            text=request.text,
            name=request.name,
            streams=request.streams,
            within=request.within,
            span=request.span,
            time=request.time,
            lateness=request.lateness,
            late=request.late,
            owner=owner_of(context.by),
            created=context.now,
        )

    def _unbounded(self, request: ContinuousQueryRequest, query: ContinuousQuery) -> _Draft:
        _check_fields(request, WINDOWED_FIELDS, "a query with windows, and this one has none")
        taken, begins = self._texts.take(request.text), resolve_start(request.begins, self._starts)
        if request.into is not None and taken.form != "construct":
            raise errors.InvalidField(
                "into", "only results of CONSTRUCT or of windows are published into a stream; subscribe to solutions"
            )
        lifted = taken.lifted
        if request.distinct and not lifted.structure.distinct:
            lifted = replace(lifted, structure=replace(lifted.structure, distinct=True))
        asked = group_query(lifted, streams=request.streams, within=request.within, span=request.span, begins=begins)
        made = replace(
            query,
            group=asked.group,
            structure=asked.structure.key,
            constants=asked.constants,
            variables=() if taken.form == "construct" else asked.variables,
            distinct=asked.structure.distinct,
            into=_output_stream(request, query) if taken.form == "construct" else None,
            begins=begins,
        )
        return _Draft(made, request.streams, structure=asked.structure)

    def _windowed(self, request: ContinuousQueryRequest, registration: Registration, query: ContinuousQuery) -> _Draft:
        _check_fields(request, UNBOUNDED_FIELDS, "a query without windows; windows state it themselves")
        if (
            registration.name is not None
            and request.name is not None
            and _stream_of_name(request.name) != registration.name
        ):
            raise errors.InvalidField(
                "name", f"the query registers itself as {registration.name}, and name says {request.name}"
            )
        plan = query_requests.plan_registration(request.text, registration)
        if plan.reads_static:
            dataset, published = registration.query.dataset, self._flows.published
            query_requests.check_static_data(request.text, dataset, self._registry, published)
        named = replace(query, name=request.name or registration.name)
        names = plan.names if plan.template is None else ()
        return _Draft(
            replace(named, into=_output_stream(request, named), variables=names), plan.streams, plan.reads_static
        )

    def _store(self, drafts: Sequence[_Draft], context: _RequestContext) -> list[int]:
        structures = {each.structure.key: each.structure for each in drafts if each.structure is not None}
        missing = [*self._structures.missing(structures)]
        entries = [*missing, *((QUERY, each.resource.id, query_to_value(each.resource)) for each in drafts)]
        indexes = (entry for each in drafts for entry in each.index_entries())
        positions = self._registry.put([*entries, *indexes])[len(missing) : len(entries)]
        self._structures.remember(structures)
        try:
            self._check_again(drafts, context)
        except (errors.Unavailable, errors.InvalidField):
            # No client knows their ids yet.
            self._registry.put([entry for each in drafts for entry in _end_entries(each.resource)])
            raise
        return positions

    def _check_again(self, drafts: Sequence[_Draft], context: _RequestContext) -> None:
        """Raises Unavailable or InvalidField if the policy or the dataflow changed meanwhile."""
        if drafts and self._policies.current().version != context.policy.version:
            raise errors.Unavailable("the policy changed while the queries were registered; register them again")
        for each in drafts:
            self._flows.check(each.flow)


@dataclass(frozen=True)
class _Draft:
    """A query that is not registered yet, and the streams that it reads."""

    resource: ContinuousQuery
    reads: StreamsRead
    background: bool = False
    """Whether it reads static data outside of its windows."""
    structure: QueryStructure | None = None

    @property
    def flow(self) -> QueryFlow:
        return QueryFlow(self.resource.id, self.reads, self.resource.into)

    def index_entries(self) -> Iterator[RegistryEntry]:
        """Entries by which it is found, by owner and by output stream."""
        if self.resource.owner is not None:
            yield queries_owned_by(self.resource.owner.name), self.resource.id, {}
        if self.resource.into is not None:
            yield queries_publishing_to(self.resource.into), self.resource.id, {"reads": self.reads}


@dataclass(frozen=True)
class _RequestContext:
    """The principal, the policy, and the dataflow with the drafts so far, looked up once."""

    by: Principal
    policy: PolicyVersion
    flows: DataflowGraph
    now: int
    drafted: list[QueryFlow] = field(default_factory=list)

    def admit(self, draft: _Draft) -> None:
        """Raises Forbidden, or InvalidField for an unknown stream or a cycle in the dataflow."""
        query, flow = draft.resource, draft.flow
        dataflow.check_authorized(self.by, self.policy.policy, draft.reads, query.into, draft.background)
        self.flows.check(flow, self.drafted)
        unknown = self.flows.find_unknown(flow, self.drafted)
        if unknown is not None:
            raise query_requests.unknown_stream(query.text, unknown) if query.windowed else _unknown_stream(unknown)
        if query.into is not None:
            self.drafted.append(flow)


def _output_stream(request: ContinuousQueryRequest, query: ContinuousQuery) -> str:
    """The stream that is requested, or named like the query."""
    return request.into or (f"query-{query.id}" if query.name is None else _stream_of_name(query.name))


def _stream_of_name(name: str) -> str:
    """The last part of a name. Raises InvalidField if it is not the name of a stream."""
    try:
        return check_stream_name(re.split("[/#]", name)[-1])
    except errors.BadRequest as error:
        raise errors.InvalidField(
            "name", f"answers are published to the stream that name ends in, and {error}"
        ) from None


def _check_fields(request: ContinuousQueryRequest, fields: Sequence[str], owner: str) -> None:
    for name in fields:
        if name in request.given:
            raise errors.InvalidField(name, f"{name} belongs to {owner}")


def _unknown_stream(stream: str) -> errors.InvalidField:
    return errors.InvalidField("streams", f"nothing was ever published to {stream}, and no other query publishes to it")


def _end_entries(query: ContinuousQuery) -> list[RegistryEntry]:
    owned: list[RegistryEntry] = [] if query.owner is None else [(queries_owned_by(query.owner.name), query.id, None)]
    into: list[RegistryEntry] = [] if query.into is None else [(queries_publishing_to(query.into), query.id, None)]
    return [(QUERY, query.id, None), *owned, *into]


_TEXT_TYPES = (resource_operations.SPARQL_TYPE, resource_operations.TEXT_TYPE)


def query_routes(queries: ContinuousQueryManager) -> list[web.RouteDef]:
    @serves(resource_operations.REGISTER_QUERY)
    async def register(request: web.Request) -> web.StreamResponse:
        """A text or an object registers one query, an array all that it holds or none, each line one or not."""
        if request.content_type == NDJSON:
            return await resource.register_lines(request, queries, ContinuousQueryRequest.from_json)
        if request.content_type in _TEXT_TYPES:
            text = await read_text_within(request, "the query", QUERY_BYTES)
            one = ContinuousQueryRequest.from_text(text, request.query.items())
            return await resource.register_json(one, request, queries, lambda given: one, show)
        given = await read_json(request, SUBSCRIPTION_BODY_BYTES, (JSON, *_TEXT_TYPES, NDJSON))
        return await resource.register_json(given, request, queries, ContinuousQueryRequest.from_json, show)

    def show(found: ContinuousQuery, request: ContinuousQueryRequest) -> ContinuousQueryDocument:
        return query_document(found)

    def read(id: str, by: Principal) -> ContinuousQueryDocument:
        found, figures = queries.find(id, by), queries.figures(id)
        return query_document(found, figures=ABSENT if figures is None else dict(figures))

    return routes_of(
        register,
        resource.handle_page(resource_operations.QUERIES, "queries", queries.page, query_document),
        resource.handle_find(resource_operations.FIND_QUERY, read),
        resource.handle_delete(resource_operations.END_QUERY, queries.end),
    )


def query_document(found: ContinuousQuery, figures: Any = ABSENT) -> ContinuousQueryDocument:  # noqa: ANN401
    """A continuous query, with the pipeline's statistics if there are any."""
    clock = {"time": found.time.value, "lateness": found.lateness, "late": found.late.value}
    semantics = {"semantics": "set" if found.distinct else "bag"}
    return ContinuousQueryDocument(
        id=found.id,
        query=found.text,
        name=present(found.name),
        state=found.state.value,
        **(clock if found.windowed else semantics),
        streams=present(found.streams),
        within=present(found.within),
        span=present(found.span),
        into=present(found.into),
        stream=ABSENT if found.into is None else f"/streams/{found.into}",
        created=format_timestamp(found.created),
        since=format_position(found.since),
        from_=ABSENT if found.begins is None else format_start(found.begins),
        answers=f"/queries/{found.id}/answers",
        figures=figures,
    )
