"""Repeaters: edges that relays feed with streams of this one, and `/repeaters`, where the relays announce them.

An announcement expires unless it is repeated. Edges that serve one directory share announcements through files,
since
a relay reaches one of them by chance.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from aiohttp import web

from triplewire.config.files import replace_file
from triplewire.http.openapi import resource_operations, serves
from triplewire.http.openapi.resource_schemas import RELAY_STREAMS
from triplewire.http.resources.bodies import SUBSCRIPTION_BODY_BYTES
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, InvalidField
from triplewire.storage.registry.streams import check_stream_name

REPEATERS: Final = 256
"""Relays that an edge listens to when they tell of themselves; each is a small file."""

REPEATER_SECONDS: Final = 15.0
"""How long an edge believes what a relay told: a relay says it again three times meanwhile."""

REPEATER_LOOK_SECONDS: Final = 1.0
"""Between two looks at what other edges over the same directory were told."""

REPEATER_FULL: Final = 0.9
"""How busy a repeater may be that somebody is sent to."""


# there.
#
# Edges over one directory share what they were told: relays reach one of them by chance.

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Repeater:
    """What a relay says of the edge that it publishes to. It is believed for a while, then it must be said again."""

    id: str
    """Of the relay."""
    streams: Mapping[str, str]
    """Of each stream that is mirrored whole, its name here and its address there."""
    load: float = 0.0
    """How busy the edge there is: 0 is idle, 1 cannot be more."""
    free: int = 1
    """How many more may listen there."""
    at: int = 0
    """When it was said, in microseconds."""


class Repeaters:
    """Those that are there. With a folder, each is a file in it, which is replaced at once."""

    def __init__(self, clock: Clock, folder: Path | None = None) -> None:
        self._clock = clock
        self._folder = folder
        self._told: dict[str, Repeater] = {}
        self._sent: dict[str, int] = {}
        self._looked = float("-inf")

    def tell(self, repeater: Repeater) -> None:
        """In place of what the same relay said before. More relays than a limit are not listened to."""
        fresh = {each.id: each for each in self.all()}
        if repeater.id in fresh or len(fresh) < REPEATERS:
            self._told = fresh | {repeater.id: repeater}
            self._sent.pop(repeater.id, None)
            if self._folder is not None:
                _write(self._folder, repeater)

    def withdraw(self, id: str) -> None:
        self._told.pop(id, None)
        if self._folder is not None:
            _path(self._folder, id).unlink(missing_ok=True)

    def all(self) -> list[Repeater]:
        """By id. What another edge of the directory was told is known within a second."""
        if self._folder is not None and self._clock.ticks() - self._looked >= REPEATER_LOOK_SECONDS:
            self._looked = self._clock.ticks()
            self._told |= {each.id: each for each in _read(self._folder) if self._newer(each)}
        oldest = self._clock.now() - int(REPEATER_SECONDS * 1_000_000)
        self._told = {id: each for id, each in self._told.items() if each.at >= oldest}
        return sorted(self._told.values(), key=lambda each: each.id)

    def of(self, stream: str) -> str | None:
        """The address of the stream at the repeater that has most room; None where none has any. Whoever asks is taken
        to send somebody there, until that repeater tells anew how busy it is."""
        best = self._best(stream)
        if best is None:
            return None
        self._sent[best.id] = self._sent.get(best.id, 0) + 1
        return best.streams[stream]

    def any(self, stream: str) -> str | None:
        """The same, for who only wants to know."""
        best = self._best(stream)
        return None if best is None else best.streams[stream]

    def _best(self, stream: str) -> Repeater | None:
        there = [each for each in self.all() if stream in each.streams and self._room(each)]
        return min(there, key=self._load, default=None)

    def _newer(self, repeater: Repeater) -> bool:
        known = self._told.get(repeater.id)
        return known is None or repeater.at > known.at

    def _room(self, repeater: Repeater) -> bool:
        return self._load(repeater) < REPEATER_FULL and self._sent.get(repeater.id, 0) < repeater.free

    def _load(self, repeater: Repeater) -> float:
        return repeater.load + self._sent.get(repeater.id, 0) / max(repeater.free, 1)


def _path(folder: Path, id: str) -> Path:
    return folder / f"{id}.json"


def _write(folder: Path, repeater: Repeater) -> None:
    try:
        replace_file(_path(folder, repeater.id), orjson.dumps(asdict(repeater)), durable=False)
    except OSError:
        # This edge knows it; the others will hear of it when there is room on the disk.
        logger.warning("the repeater %s could not be told of to other edges", repeater.id, exc_info=True)


def _read(folder: Path) -> list[Repeater]:
    found = []
    for path in folder.glob("*.json"):
        try:
            found.append(Repeater(**orjson.loads(path.read_bytes())))
        except (OSError, ValueError, TypeError):
            # It went, or somebody else's file is there.
            continue
    return found


# `/repeaters`: relays tell which edges repeat the streams of this one.

_ID = re.compile(r"[A-Za-z0-9-]{1,64}")


class RepeaterEndpoint:
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

    @serves(resource_operations.REPEATERS)
    async def list(self, request: web.Request) -> web.Response:
        """All that have told of themselves of late."""
        body = orjson.dumps({"repeaters": [asdict(each) for each in self._repeaters.all()]})
        return web.Response(body=body, content_type="application/json")

    @serves(resource_operations.PUT_REPEATER)
    async def put(self, request: web.Request) -> web.Response:
        """204; to be said again before `REPEATER_SECONDS` are over."""
        told = await _object(request)
        repeater = Repeater(
            _id(request), _streams(told.get("streams")), _load(told.get("load", 0.0)), _free(told.get("free", 1)),
            self._clock.now(),
        )  # fmt: skip
        self._repeaters.tell(repeater)
        return web.Response(status=204)

    @serves(resource_operations.REMOVE_REPEATER)
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
        told = orjson.loads(body) if len(body) <= SUBSCRIPTION_BODY_BYTES else None
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is no JSON: {error}") from None
    if not isinstance(told, dict):
        raise BadRequest('the body is an object such as {"streams": {"s": "http://host/streams/s"}, "load": 0.5}')
    return told


def _streams(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict) or not value or len(value) > RELAY_STREAMS:
        raise InvalidField("streams", f"streams is an object with 1 to {RELAY_STREAMS} names and their addresses")
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
