"""`GET /streams` and `/streams/{stream}/about`: the streams that there are, as JSON or as an RDF catalog, with
`Link`
headers (RFC 8288) and the API catalog (RFC 9727).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson
from aiohttp import hdrs, web

from triplewire.config.traffic import NOTIFICATIONS, StreamTraffic, sum_by_stream
from triplewire.history.dataset_statistics import DatasetStatistics
from triplewire.http.api_documents import CacheableDocument, respond_conditionally
from triplewire.http.auth import caller
from triplewire.http.dialects.ldes import CurrentVisibility
from triplewire.http.discovery.catalog import (
    StreamProfile,
    StreamProfiles,
    profile_document,
    write_catalog,
    write_dataset,
    write_void,
)
from triplewire.http.openapi import routes_of, serves, stream_operations
from triplewire.http.openapi.documents import StreamDescriptionDocument
from triplewire.http.peers.status import EdgeStatusReporter
from triplewire.http.ports import ThreadPool
from triplewire.http.resources.bodies import JSON, check_members, parse_json
from triplewire.model.errors import BadRequest, InvalidField, NotFound
from triplewire.rdf import TURTLE, check_id
from triplewire.rdf.serializer import choose_syntax, write_document
from triplewire.rdf.syntaxes import SYNTAXES, choose_offer
from triplewire.security import Principal, Visibility
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.streams import (
    ABOUT,
    DESCRIPTION_CHARACTERS,
    DESCRIPTION_KEYWORDS,
    StreamDescription,
    check_stream_name,
    description_to_value,
)

CATALOG_STREAMS: Final = 100
"""Streams in one page of the catalog: a second at worst, without cached samples."""

CATALOG_SECONDS: Final = 10
"""Seconds for which a catalog may be cached."""


def parse_description(body: bytes) -> StreamDescription:
    """Parse a JSON object. Raises BadRequest, or InvalidField with the member that does not fit."""
    value = parse_json(body)
    if not isinstance(value, dict):
        raise BadRequest("the body must be a JSON object")
    check_members(value, "the description of a stream", StreamDescriptionDocument)
    texts = {name: _parse_text(name, value.get(name)) for name in ("title", "description")}
    addresses = {name: _parse_iri(name, value.get(name)) for name in ("licence", "version_of")}
    return StreamDescription(**texts, **addresses, keywords=_parse_keywords(value.get("keywords", [])))


def _parse_text(name: str, value: Any) -> str | None:  # noqa: ANN401 - whatever was sent
    if value is not None and (not isinstance(value, str) or not 0 < len(value) <= DESCRIPTION_CHARACTERS):
        raise InvalidField(name, f"{name} must be a text of 1 to {DESCRIPTION_CHARACTERS} characters")
    if value is not None and any(0xD800 <= ord(each) <= 0xDFFF for each in value):
        raise InvalidField(name, f"{name} must not have surrogates")
    return value


def _parse_iri(name: str, value: Any) -> str | None:  # noqa: ANN401
    text = _parse_text(name, value)
    try:
        return None if text is None else check_id(text)
    except BadRequest as error:
        raise InvalidField(name, f"{name} must be an absolute IRI: {error}") from None


def _parse_keywords(value: Any) -> tuple[str, ...]:  # noqa: ANN401
    if not isinstance(value, list) or len(value) > DESCRIPTION_KEYWORDS or None in value:
        raise InvalidField("keywords", f"keywords must be a list of at most {DESCRIPTION_KEYWORDS} texts")
    return tuple(_parse_text("keywords", each) or "" for each in value)


@dataclass(frozen=True)
class StreamListing:
    """Endpoints that list and describe the streams that a principal may see."""

    profiles: StreamProfiles
    visibility: CurrentVisibility
    edges: EdgeStatusReporter
    registry: Registry
    statistics: Callable[[], DatasetStatistics | None]
    workers: ThreadPool
    page: int = CATALOG_STREAMS
    """Streams of a page, at most."""

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.streams, self.about, self.put, self.void)

    @serves(stream_operations.STREAMS)
    async def streams(self, request: web.Request) -> web.Response:
        """A page of streams, by name; the JSON has the traffic of all edges."""
        after, base = request.query.get("cursor", ""), origin_of(request)
        found, more, visible = await self.workers.run(self._page, after, caller(request))
        links = [] if more is None else [f'<{base}/streams?cursor={more}>; rel="next"']
        if prefers_json(request):
            body = orjson.dumps(await self.workers.run(self._traffic, base, found, visible))
            return respond_conditionally(request, CacheableDocument(body, JSON, 1), caller(request), links)
        return self._respond(request, write_catalog(base, found), links)

    @serves(stream_operations.ABOUT)
    async def about(self, request: web.Request) -> web.Response:
        """One stream. Raises NotFound."""
        stream, base = check_stream_name(request.match_info["stream"]), origin_of(request)
        found = await self.workers.run(self._find, stream, caller(request))
        if prefers_json(request):
            return respond_conditionally(
                request, CacheableDocument(orjson.dumps(profile_document(found, base)), JSON, 1), caller(request)
            )
        return self._respond(request, write_dataset(base, found))

    @serves(stream_operations.PUT_ABOUT)
    async def put(self, request: web.Request) -> web.Response:
        """Replace the description of a stream. Raises InvalidField or BadRequest."""
        stream, about = check_stream_name(request.match_info["stream"]), parse_description(await request.read())
        await self.workers.run(self.registry.put, [(ABOUT, stream, description_to_value(about))])
        return web.Response(body=orjson.dumps({"stream": stream, **description_to_value(about)}), content_type=JSON)

    @serves(stream_operations.VOID)
    async def void(self, request: web.Request) -> web.Response:
        """The dataset of all events."""
        found = await self.workers.run(self._count, caller(request))
        return self._respond(request, write_void(origin_of(request), found))

    def _respond(self, request: web.Request, lines: Iterable[str], links: Sequence[str] = ()) -> web.Response:
        syntax = choose_syntax(request.headers.get("Accept"), TURTLE)
        kept = CacheableDocument(write_document("".join(lines), syntax), syntax.media_type, CATALOG_SECONDS)
        return respond_conditionally(request, kept, caller(request), links)

    def _page(self, after: str, principal: Principal) -> tuple[list[StreamProfile], str | None, Visibility | None]:
        visible = self.visibility.find(principal)
        return *self.profiles.page(after, self.page, visible), visible

    def _find(self, stream: str, principal: Principal) -> StreamProfile:
        found = self.profiles.find(stream, self.visibility.find(principal))
        if found is None:
            raise NotFound(f"nothing was ever published to {stream}, and it has no description")
        return found

    def _count(self, principal: Principal) -> DatasetStatistics | None:
        return None if self.visibility.find(principal) is not None else self.statistics()

    def _traffic(self, base: str, found: Sequence[StreamProfile], visible: Visibility | None) -> dict[str, Any]:
        """Streams with the traffic of all edges, unless that would reveal hidden events."""
        if visible is not None and not visible.leaves_streams:
            return {"streams": [profile_document(each, base) for each in found]}
        statuses = [self.edges.own(), *self.edges.others()]
        flows = {
            flow.stream: asdict(flow) for flow in sum_by_stream(flow for each in statuses for flow in each.streams)
        }
        notifications = flows.pop(NOTIFICATIONS, asdict(StreamTraffic(NOTIFICATIONS)))
        seen = {name: flow for name, flow in flows.items() if visible is None or name in visible.streams}
        listed = {each.stream: asdict(StreamTraffic(each.stream)) | profile_document(each, base) for each in found}
        both = [{**listed.get(name, {}), **seen.get(name, {})} for name in sorted(listed.keys() | seen.keys())]
        return {"streams": both} | ({"notifications": notifications} if visible is None else {})


def origin_of(request: web.Request) -> str:
    """The URL of the edge, as the client has it."""
    return str(request.url.origin())


def prefers_json(request: web.Request) -> bool:
    """Whether the client prefers JSON to RDF."""
    offers = [(JSON,), *(each.media_types for each in SYNTAXES)]
    return choose_offer(request.headers.get("Accept"), offers) == 0


LINKSET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
_OPENAPI = "application/vnd.oai.openapi+json;version=3.1"

_LINKS: dict[str, tuple[str, ...]] = {
    "/": (
        '</openapi.json>; rel="service-desc"',
        '</docs>; rel="service-doc"',
        '</streams>; rel="describedby"',
        '</.well-known/api-catalog>; rel="api-catalog"',
        '</health>; rel="status"',
    ),
    "/streams": (
        '</streams>; rel="self"',
        '</streams>; rel="alternate"; type="text/turtle"',
        '</.well-known/void>; rel="describedby"',
        '</.well-known/mercure>; rel="mercure"',
    ),
    "/streams/{stream}": (
        '</streams/{stream}/about>; rel="describedby"',
        '</.well-known/mercure>; rel="mercure"',
        '</streams/{stream}/ldes>; rel="https://w3id.org/tree#view"',
    ),
    "/streams/{stream}/about": (
        '</streams/{stream}>; rel="describes"',
        '</streams/{stream}/ldes>; rel="https://w3id.org/tree#view"',
        '</streams>; rel="collection"',
    ),
}


def add_links(app: web.Application) -> None:
    """Add `Link` headers (RFC 8288) to the responses of an application."""

    async def name(request: web.Request, response: web.StreamResponse) -> None:
        resource = request.match_info.route.resource
        for link in _LINKS.get(resource.canonical if resource else "", ()) if response.status < 400 else ():
            response.headers.add(hdrs.LINK, link.replace("{stream}", request.match_info.get("stream", "")))

    app.on_response_prepare.append(name)


@serves(stream_operations.API_CATALOG)
async def api_catalog(request: web.Request) -> web.Response:
    """The API catalog (RFC 9727)."""
    base = origin_of(request)
    known = {
        "anchor": f"{base}/",
        "service-desc": [
            {"href": f"{base}/openapi.json", "type": _OPENAPI},
            {"href": f"{base}/asyncapi.json", "type": "application/vnd.aai.asyncapi+json;version=3.0.0"},
        ],
        "service-doc": [{"href": f"{base}/docs", "type": "text/html"}],
        "service-meta": [{"href": f"{base}/streams", "type": "text/turtle"}],
        "status": [{"href": f"{base}/health", "type": "application/json"}],
    }
    headers = {hdrs.CONTENT_TYPE: LINKSET, hdrs.LINK: f'<{base}/.well-known/api-catalog>; rel="api-catalog"'}
    return web.Response(body=orjson.dumps({"linkset": [known]}), headers=headers)
