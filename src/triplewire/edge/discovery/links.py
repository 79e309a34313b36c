"""Links: where answers lead on (RFC 8288), and the catalogue of what is served here (RFC 9727)."""

from __future__ import annotations

import orjson
from aiohttp import hdrs, web

from triplewire.contract import serves
from triplewire.contract.catalogue import discovering
from triplewire.edge.discovery.listings import origin

LINKSET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
_OPENAPI = "application/vnd.oai.openapi+json;version=3.1"

_LED: dict[str, tuple[str, ...]] = {
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


def lead(app: web.Application) -> None:
    """Let the answers of an application lead on."""

    async def name(request: web.Request, response: web.StreamResponse) -> None:
        resource = request.match_info.route.resource
        for link in _LED.get(resource.canonical if resource else "", ()) if response.status < 400 else ():
            response.headers.add(hdrs.LINK, link.replace("{stream}", request.match_info.get("stream", "")))

    app.on_response_prepare.append(name)


@serves(discovering.API_CATALOG)
async def api_catalog(request: web.Request) -> web.Response:
    """What is served here, for machines that know nothing yet."""
    base = origin(request)
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


def routes() -> list[web.RouteDef]:
    return [web.get("/.well-known/api-catalog", api_catalog)]
