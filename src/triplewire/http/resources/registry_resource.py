"""A generic registry resource: find, list, page and register entries of one kind, and the HTTP handlers of that.

A manager derives from `RegistryResource` and declares its registry kind, its noun, its codec and, if entries have
owners, the index by owner. `handle_find` and its like serve it. Managers block, so that handlers call them in threads.
Handlers raise; the middleware writes the problem document.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from aiohttp import web

from triplewire.http.auth import caller
from triplewire.http.openapi import Operation, serves
from triplewire.http.openapi.schemas import Document
from triplewire.http.resources.bodies import json_response, parse_page_size
from triplewire.http.resources.bulk import BULK_LINES, BulkResult, bulk_response
from triplewire.matching.canonical_form import CACHED_SKELETONS
from triplewire.model import START, format_position, parse_position
from triplewire.model.errors import BadRequest, NotFound, TriplewireError
from triplewire.security import EVERYONE, Principal, Verb
from triplewire.security.principals import may_see
from triplewire.storage.registry.ports import PAGE_ENTRIES, Registry, RegistryChange

Resource = TypeVar("Resource")
Requested = TypeVar("Requested")
Context = TypeVar("Context")

RegistryEntry = tuple[str, str, Mapping[str, Any] | None]
"""Kind, key and value of an entry to put; the value None removes it."""


@dataclass(frozen=True)
class ResourcePage(Generic[Resource]):
    """Some resources, and the cursor of the next page; None on the last."""

    items: Sequence[Resource]
    next: int | None


class RegistryResource(Generic[Resource]):
    """Entries of one kind. It blocks; any thread may use it."""

    kind: ClassVar[str]
    noun: ClassVar[str]
    """The kind in error messages."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    @staticmethod
    @abstractmethod
    def from_change(change: RegistryChange) -> Resource:
        """Read an entry."""

    @staticmethod
    def owned_by(name: str) -> str | None:
        """The kind of the index entries of one owner; None where entries have no owners."""
        return None

    def find(self, key: str, by: Principal = EVERYONE) -> Resource:
        """Raises NotFound if there is none, or if another principal owns it."""
        change = self._registry.get(self.kind, key)
        found = None if change is None else self.from_change(change)
        if found is None or not may_see(by, getattr(found, "owner", None)):
            raise NotFound(f"there is no {self.noun} {key}")
        return found

    def page(self, after: int = START, limit: int = PAGE_ENTRIES, by: Principal = EVERYONE) -> ResourcePage[Resource]:
        """Resources after a position that a principal may see, in order of position."""
        index = None if by.may(Verb.ADMIN) else self.owned_by(by.name)
        found = self._registry.list(index or self.kind, after=after, limit=limit + 1)
        following = found[limit - 1].position if len(found) > limit else None
        changes = (
            found[:limit] if index is None else [self._registry.get(self.kind, each.key) for each in found[:limit]]
        )
        return ResourcePage([self.from_change(each) for each in changes if each is not None], following)

    def all(self) -> Sequence[Resource]:
        """All of them, in order of position."""
        return [self.from_change(each) for each in self._registry.list(self.kind)]

    def each(self) -> Iterator[Resource]:
        """All of them, read in batches."""
        after: int = START
        while changes := self._registry.list(self.kind, after=after, limit=BULK_LINES):
            yield from map(self.from_change, changes)
            after = changes[-1].position


class Draft(Protocol):
    """A resource that is checked, and not registered yet: a frozen dataclass with `id` and `since`, its position."""

    @property
    def resource(self) -> Any: ...  # noqa: ANN401 - mypy has no type for such dataclasses


DraftType = TypeVar("DraftType", bound=Draft)


class BulkRegistration(ABC, Generic[Requested, Context, DraftType, Resource]):
    """Registers many resources in one transaction."""

    refusals: ClassVar[tuple[type[TriplewireError], ...]]
    """Errors that concern one request, and leave the others alone."""

    def register(self, requests: Sequence[Requested], by: Principal = EVERYONE) -> list[Resource]:
        """Register all of them, or none. Raises the error of the first that cannot be.

        Each sees every event whose publish is answered after this returns.
        """
        context = self._context(by)
        drafts = [self._draft(each, context) for each in requests]
        positions = self._store(drafts, context)
        return [replace(each.resource, since=at) for each, at in zip(drafts, positions, strict=True)]

    def register_each(
        self, requests: Sequence[Requested | TriplewireError], by: Principal = EVERYONE
    ) -> list[BulkResult]:
        """Register those that can be: the id and position of each, or its error. If the registry fails, none is
        registered, and each has that error."""
        context = self._context(by)
        drafts = [self._try_draft(each, context) for each in requests]
        try:
            positions = iter(self._store([each for each in drafts if not isinstance(each, TriplewireError)], context))
        except TriplewireError as error:
            return [each if isinstance(each, TriplewireError) else error for each in drafts]
        return [each if isinstance(each, TriplewireError) else (each.resource.id, next(positions)) for each in drafts]

    def _try_draft(self, request: Requested | TriplewireError, context: Context) -> DraftType | TriplewireError:
        try:
            return request if isinstance(request, TriplewireError) else self._draft(request, context)
        except self.refusals as error:
            return error

    @abstractmethod
    def _context(self, by: Principal) -> Context:
        """Look up once what all requests of a principal need."""

    @abstractmethod
    def _draft(self, request: Requested, context: Context) -> DraftType:
        """Check one request. Raises one of `refusals`."""

    @abstractmethod
    def _store(self, drafts: Sequence[DraftType], context: Context) -> Sequence[int]:
        """Put the drafts into the registry; the position of each."""


class KnownEntries:
    """Remembers keys of one kind that the registry has; such entries are never removed."""

    def __init__(self, registry: Registry, kind: str) -> None:
        self._registry = registry
        self._kind = kind
        self._known: set[str] = set()

    def missing(self, values: Mapping[str, Any]) -> Iterator[RegistryEntry]:
        """Entries to put for those that the registry does not have."""
        for key, value in values.items():
            if key not in self._known and self._registry.get(self._kind, key) is None:
                yield self._kind, key, value.to_value()

    def remember(self, values: Mapping[str, Any]) -> None:
        """Call this when they are put."""
        if len(self._known) > CACHED_SKELETONS:
            self._known = set()
        self._known |= values.keys()


Show = Callable[[Any], Document]
RunBlocking = Callable[..., Awaitable[Any]]
"""Runs a blocking function in a thread."""
RequestHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def handle_list(operation: Operation, name: str, read: Callable[[], Sequence[Any]], show: Show) -> RequestHandler:
    """Serve all resources, as a member of an object."""

    @serves(operation)
    async def handle(request: web.Request) -> web.Response:
        return json_response({name: [show(each).to_json() for each in await asyncio.to_thread(read)]})

    return handle


def handle_page(
    operation: Operation,
    name: str,
    read: Callable[[int, int, Principal], ResourcePage[Any]],
    show: Show,
    run: RunBlocking = asyncio.to_thread,
) -> RequestHandler:
    """Serve resources after `cursor`, at most `limit`."""

    @serves(operation)
    async def handle(request: web.Request) -> web.Response:
        cursor = parse_position(request.query.get("cursor", "earliest"))
        page = await run(read, cursor, parse_page_size(request), caller(request))
        following = None if page.next is None else format_position(page.next)
        return json_response({name: [show(each).to_json() for each in page.items], "next": following})

    return handle


def handle_find(operation: Operation, read: Callable[[str, Principal], Document]) -> RequestHandler:
    @serves(operation)
    async def handle(request: web.Request) -> web.Response:
        found = await asyncio.to_thread(read, _key(request), caller(request))
        return json_response(found.to_json())

    return handle


def handle_delete(operation: Operation, remove: Callable[[str, Principal], object]) -> RequestHandler:
    @serves(operation)
    async def handle(request: web.Request) -> web.Response:
        await asyncio.to_thread(remove, _key(request), caller(request))
        return web.Response(status=204)

    return handle


def handle_put(operation: Operation, write: Callable[[str, web.Request], Awaitable[Document]]) -> RequestHandler:
    """Create or replace the resource of a name."""

    @serves(operation)
    async def handle(request: web.Request) -> web.Response:
        made = await write(_key(request), request)
        return json_response(made.to_json(), headers={"Location": request.path})

    return handle


def _key(request: web.Request) -> str:
    """The only parameter in the path."""
    (key,) = request.match_info.values()
    return key


async def register_lines(
    request: web.Request,
    manager: BulkRegistration[Requested, Any, Any, Any],
    parse: Callable[[object], Requested],
) -> web.StreamResponse:
    """Register a resource for each line of a body; the response has a line for each."""
    return await bulk_response(request, parse, partial(manager.register_each, by=caller(request)))


async def register_json(
    given: object,
    request: web.Request,
    manager: BulkRegistration[Requested, Any, Any, Any],
    parse: Callable[[object], Requested],
    show: Callable[[Any, Requested], Document],
) -> web.Response:
    """Register one resource of an object, or all of an array, or none."""
    requests = [parse(each) for each in given] if isinstance(given, list) else [parse(given)]
    if not requests:
        raise BadRequest("the array is empty")
    made = await asyncio.to_thread(manager.register, requests, caller(request))
    documents = [show(*each).to_json() for each in zip(made, requests, strict=True)]
    if isinstance(given, list):
        return json_response(documents, status=201)
    return json_response(documents[0], status=201, headers={"Location": f"{request.path}/{documents[0]['id']}"})
