"""`/repeaters`: relays tell which edges repeat the streams of this one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

import orjson
from aiohttp import web

from triplewire.config import limits
from triplewire.contract import serves
from triplewire.contract.catalogue import running
from triplewire.edge.company.repeaters import Repeater, Repeaters
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, InvalidField
from triplewire.storage.registry.streams import check_stream_name

_ID = re.compile(r"[A-Za-z0-9-]{1,64}")


class Announcements:
    """Takes them, and tells of them."""

    def __init__(self, repeaters: Repeaters, clock: Clock) -> None:
        self._repeaters = repeaters
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/repeaters", self.list),
            web.put("/repeaters/{id}", self.put),
            web.delete("/repeaters/{id}", self.delete),
        ]

    @serves(running.REPEATERS)
    async def list(self, request: web.Request) -> web.Response:
        """All that have told of themselves of late."""
        body = orjson.dumps({"repeaters": [asdict(each) for each in self._repeaters.all()]})
        return web.Response(body=body, content_type="application/json")

    @serves(running.PUT_REPEATER)
    async def put(self, request: web.Request) -> web.Response:
        """204; to be said again before `REPEATER_SECONDS` are over."""
        told = await _object(request)
        repeater = Repeater(
            _id(request), _streams(told.get("streams")), _load(told.get("load", 0.0)), _free(told.get("free", 1)),
            self._clock.now(),
        )  # fmt: skip
        self._repeaters.tell(repeater)
        return web.Response(status=204)

    @serves(running.REMOVE_REPEATER)
    async def delete(self, request: web.Request) -> web.Response:
        self._repeaters.withdraw(_id(request))
        return web.Response(status=204)


def _id(request: web.Request) -> str:
    id = request.match_info["id"]
    if not _ID.fullmatch(id):
        raise BadRequest(f"{id[:80]!r} is no id of a relay: up to 64 letters, digits and - are")
    return id


async def _object(request: web.Request) -> Mapping[str, Any]:
    body = await request.read()
    try:
        told = orjson.loads(body) if len(body) <= limits.SUBSCRIPTION_BODY_BYTES else None
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is no JSON: {error}") from None
    if not isinstance(told, dict):
        raise BadRequest('the body is an object such as {"streams": {"s": "http://host/streams/s"}, "load": 0.5}')
    return told


def _streams(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict) or not value or len(value) > limits.RELAY_STRANDS:
        raise InvalidField(
            "streams", f"streams is an object with 1 to {limits.RELAY_STRANDS} names and their addresses"
        )
    return {check_stream_name(name): _address(each) for name, each in value.items()}


def _address(value: object) -> str:
    try:
        parts = urlsplit(value) if isinstance(value, str) and value.isascii() and value.isprintable() else None
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidField("streams", f"{value!r} is no address of a stream, such as http://host:8080/streams/name")
    return str(value)


def _load(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidField("load", f"load is a number from 0 to 1, not {value!r}")
    return float(value)


def _free(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidField("free", f"free is a number of seats, not {value!r}")
    return value
