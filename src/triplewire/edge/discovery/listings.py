"""`GET /streams` and `/streams/{stream}/about`: what there is, as JSON and as a catalogue in RDF."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import orjson
from aiohttp import web

from triplewire.access import Principal, Sight
from triplewire.config import limits
from triplewire.config.metrics import NOTIFICATIONS, StreamTraffic, sum_by_stream
from triplewire.contract import serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import discovering
from triplewire.edge.company.standings import Standings
from triplewire.edge.discovery.catalogues import catalogue, dataset, whole
from triplewire.edge.discovery.drafts import drafted
from triplewire.edge.discovery.profiles import Profile, Profiles, told
from triplewire.edge.discovery.sightings import Sightings
from triplewire.edge.freshness import Fresh, fresh
from triplewire.edge.workers import Workers
from triplewire.history.dataset_statistics import DatasetStatistics
from triplewire.model.errors import NotFound
from triplewire.rdf import TURTLE
from triplewire.rdf.serializer import choose_syntax, write_document
from triplewire.rdf.syntaxes import SYNTAXES, choose_offer
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.streams import ABOUT, check_stream_name, description_to_value

JSON = "application/json"


class Listings:
    """Tells of streams to those who see them."""

    def __init__(
        self,
        profiles: Profiles,
        sightings: Sightings,
        standings: Standings,
        registry: Registry,
        census: Callable[[], DatasetStatistics | None],
        workers: Workers,
    ) -> None:
        self._profiles = profiles
        self._sightings = sightings
        self._standings = standings
        self._registry = registry
        self._census = census
        self._workers = workers

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/streams", self.streams),
            web.get("/streams/{stream}/about", self.about),
            web.put("/streams/{stream}/about", self.put),
            web.get("/.well-known/void", self.void),
        ]

    @serves(discovering.STREAMS)
    async def streams(self, request: web.Request) -> web.Response:
        """Some of them, by name; what flows out of all edges is told of all."""
        after, base = request.query.get("cursor", ""), origin(request)
        found, more, sight = await self._workers.run(self._page, after, caller(request))
        links = [] if more is None else [f'<{base}/streams?cursor={more}>; rel="next"']
        if speaks_json(request):
            body = orjson.dumps(await self._workers.run(self._told, base, found, sight))
            return fresh(request, Fresh(body, JSON, 1), caller(request), links)
        return self._written(request, catalogue(base, found), links)

    @serves(discovering.ABOUT)
    async def about(self, request: web.Request) -> web.Response:
        """One of them. Raises NotFound."""
        stream, base = check_stream_name(request.match_info["stream"]), origin(request)
        found = await self._workers.run(self._of, stream, caller(request))
        if speaks_json(request):
            return fresh(request, Fresh(orjson.dumps(told(found, base)), JSON, 1), caller(request))
        return self._written(request, dataset(base, found))

    @serves(discovering.PUT_ABOUT)
    async def put(self, request: web.Request) -> web.Response:
        """Say something about a stream, in place of what was said before. Raises Unfit or BadRequest."""
        stream, about = check_stream_name(request.match_info["stream"]), drafted(await request.read())
        await self._workers.run(self._registry.put, [(ABOUT, stream, description_to_value(about))])
        return web.Response(body=orjson.dumps({"stream": stream, **description_to_value(about)}), content_type=JSON)

    @serves(discovering.VOID)
    async def void(self, request: web.Request) -> web.Response:
        """What all of it has in it."""
        found = await self._workers.run(self._counted, caller(request))
        return self._written(request, whole(origin(request), found))

    def _written(self, request: web.Request, lines: Iterable[str], links: Sequence[str] = ()) -> web.Response:
        syntax = choose_syntax(request.headers.get("Accept"), TURTLE)
        kept = Fresh(write_document("".join(lines), syntax), syntax.media_type, limits.CATALOGUE_SECONDS)
        return fresh(request, kept, caller(request), links)

    def _page(self, after: str, principal: Principal) -> tuple[list[Profile], str | None, Sight | None]:
        sight = self._sightings.of(principal)
        return *self._profiles.page(after, limits.CATALOGUE_STREAMS, sight), sight

    def _of(self, stream: str, principal: Principal) -> Profile:
        found = self._profiles.of(stream, self._sightings.of(principal))
        if found is None:
            raise NotFound(f"nothing was ever published to {stream}, and nothing is said about it")
        return found

    def _counted(self, principal: Principal) -> DatasetStatistics | None:
        return None if self._sightings.of(principal) is not None else self._census()

    def _told(self, base: str, found: Sequence[Profile], sight: Sight | None) -> dict[str, Any]:
        """With what flows out of all edges together, where that says nothing of what is hidden."""
        if sight is not None and not sight.leaves_streams:
            return {"streams": [told(each, base) for each in found]}
        standing = [self._standings.own(), *self._standings.others()]
        flows = {
            flow.stream: asdict(flow) for flow in sum_by_stream(flow for each in standing for flow in each.streams)
        }
        notifications = flows.pop(NOTIFICATIONS, asdict(StreamTraffic(NOTIFICATIONS)))
        seen = {name: flow for name, flow in flows.items() if sight is None or name in sight.streams}
        listed = {each.stream: asdict(StreamTraffic(each.stream)) | told(each, base) for each in found}
        both = [{**listed.get(name, {}), **seen.get(name, {})} for name in sorted(listed.keys() | seen.keys())]
        return {"streams": both} | ({"notifications": notifications} if sight is None else {})


def origin(request: web.Request) -> str:
    """The address of the edge, as the client has it."""
    return str(request.url.origin())


def speaks_json(request: web.Request) -> bool:
    """Whether a client does not rather have RDF."""
    offers = [(JSON,), *(each.media_types for each in SYNTAXES)]
    return choose_offer(request.headers.get("Accept"), offers) == 0
