"""`GET /`: where to go."""

from __future__ import annotations

import orjson
from aiohttp import web

from triplewire.contract import serves
from triplewire.contract.catalogue import running

_INDEX = {
    "name": "Triplewire",
    "publish": "POST /streams/{stream}, POST /events",
    "consume": "GET /streams/{stream}",
    "read": "GET /events",
    "subscribe": "POST /subscriptions",
    "notifications": "GET /subscriptions/{id}/notifications",
    "continuous": "POST /queries",
    "answers": "GET /queries/{id}/answers",
    "templates": "PUT|GET|DELETE /templates/{name}",
    "query": "GET|POST /sparql",
    "erase": "DELETE /events/{id}, DELETE /events?source=|subject=",
    "receipts": "GET /erasures/{id}",
    "ontologies": "PUT|GET|DELETE /ontologies/{name}",
    "health": "GET /health",
    "metrics": "GET /metrics",
    "contract": "GET /openapi.json, GET /asyncapi.json, GET /docs",
}


@serves(running.INDEX)
async def index(request: web.Request) -> web.Response:
    return web.Response(body=orjson.dumps(_INDEX, option=orjson.OPT_INDENT_2), content_type="application/json")


def routes() -> list[web.RouteDef]:
    return [web.get("/", index)]
