"""Repeaters: edges that relays feed with streams of this one, and `/repeaters`, where the relays announce them.

An announcement expires unless it is repeated. Edges that serve one directory share announcements through files, since
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
from triplewire.http.openapi import resource_operations, routes_of, serves
from triplewire.http.openapi.documents import RELAY_STREAMS
from triplewire.http.resources.bodies import SUBSCRIPTION_BODY_BYTES, json_response, parse_json
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, InvalidField
from triplewire.storage.registry.streams import check_stream_name

REPEATERS: Final = 256
"""Repeaters whose announcements an edge takes; each is a small file."""

REPEATER_SECONDS: Final = 15.0
"""Time after which an announcement expires: a relay repeats it three times meanwhile."""

REPEATER_LOOK_SECONDS: Final = 1.0
"""Time between two looks at announcements to other edges over the same directory."""

REPEATER_FULL: Final = 0.9
"""Load up to which clients are sent to a repeater."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Repeater:
    """The announcement of a relay about the edge that it publishes to."""

    id: str
    """Id of the relay."""
    streams: Mapping[str, str]
    """Addresses there of streams that are mirrored whole, by their names here."""
    load: float = 0.0
    """Load of the edge there, from 0 to 1."""
    free: int = 1
    """How many more clients may listen there."""
    at: int = 0
    """Time of the announcement in microseconds."""


class Repeaters:
    """The repeaters that are announced. With a folder, each is a file in it."""

    def __init__(self, clock: Clock, folder: Path | None = None) -> None:
        self._clock = clock
        self._folder = folder
        self._known: dict[str, Repeater] = {}
        self._sent: dict[str, int] = {}
        self._looked = float("-inf")

    def announce(self, repeater: Repeater) -> None:
        """Take an announcement in place of the last one of the same relay. More than a limit are ignored."""
        known = {each.id: each for each in self.all()}
        if repeater.id in known or len(known) < REPEATERS:
            self._known = known | {repeater.id: repeater}
            self._sent.pop(repeater.id, None)
            if self._folder is not None:
                _write(self._folder, repeater)

    def withdraw(self, id: str) -> None:
        self._known.pop(id, None)
        if self._folder is not None:
            _path(self._folder, id).unlink(missing_ok=True)

    def all(self) -> list[Repeater]:
        """Return all repeaters, by id. Announcements to another edge of the directory are known within a second."""
        if self._folder is not None and self._clock.ticks() - self._looked >= REPEATER_LOOK_SECONDS:
            self._looked = self._clock.ticks()
            self._known |= {each.id: each for each in _read(self._folder) if self._is_newer(each)}
        oldest = self._clock.now() - int(REPEATER_SECONDS * 1_000_000)
        self._known = {id: each for id, each in self._known.items() if each.at >= oldest}
        return sorted(self._known.values(), key=lambda each: each.id)

    def assign(self, stream: str) -> str | None:
        """Return the address of the stream at the repeater with the least load, for one client, which counts until the
        repeater is announced anew; None where no repeater has space."""
        best = self._best(stream)
        if best is None:
            return None
        self._sent[best.id] = self._sent.get(best.id, 0) + 1
        return best.streams[stream]

    def find(self, stream: str) -> str | None:
        """Do the same, without counting a client."""
        best = self._best(stream)
        return None if best is None else best.streams[stream]

    def _best(self, stream: str) -> Repeater | None:
        candidates = [each for each in self.all() if stream in each.streams and self._has_space(each)]
        return min(candidates, key=self._load, default=None)

    def _is_newer(self, repeater: Repeater) -> bool:
        known = self._known.get(repeater.id)
        return known is None or repeater.at > known.at

    def _has_space(self, repeater: Repeater) -> bool:
        return self._load(repeater) < REPEATER_FULL and self._sent.get(repeater.id, 0) < repeater.free

    def _load(self, repeater: Repeater) -> float:
        return repeater.load + self._sent.get(repeater.id, 0) / max(repeater.free, 1)


def _path(folder: Path, id: str) -> Path:
    return folder / f"{id}.json"


def _write(folder: Path, repeater: Repeater) -> None:
    try:
        replace_file(_path(folder, repeater.id), orjson.dumps(asdict(repeater)), durable=False)
    except OSError:
        # This edge knows the repeater; the others will when there is space on the disk.
        logger.warning("the repeater %s could not be shared with other edges", repeater.id, exc_info=True)


def _read(folder: Path) -> list[Repeater]:
    repeaters = []
    for path in folder.glob("*.json"):
        try:
            repeaters.append(Repeater(**orjson.loads(path.read_bytes())))
        except (OSError, ValueError, TypeError):
            # The file was removed, or is not one of ours.
            continue
    return repeaters


_ID = re.compile(r"[A-Za-z0-9-]{1,64}")


@dataclass(frozen=True)
class RepeaterEndpoint:
    """`/repeaters`: takes announcements of relays, and lists them."""

    repeaters: Repeaters
    clock: Clock

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.list, self.put, self.delete)

    @serves(resource_operations.REPEATERS)
    async def list(self, request: web.Request) -> web.Response:
        return json_response({"repeaters": [asdict(each) for each in self.repeaters.all()]})

    @serves(resource_operations.PUT_REPEATER)
    async def put(self, request: web.Request) -> web.Response:
        """Take an announcement, which is to be repeated within `REPEATER_SECONDS`."""
        body = await _object(request)
        id, streams = _id(request), _streams(body.get("streams"))
        load, free = _load(body.get("load", 0.0)), _free(body.get("free", 1))
        self.repeaters.announce(Repeater(id, streams, load, free, self.clock.now()))
        return web.Response(status=204)

    @serves(resource_operations.REMOVE_REPEATER)
    async def delete(self, request: web.Request) -> web.Response:
        self.repeaters.withdraw(_id(request))
        return web.Response(status=204)


def _id(request: web.Request) -> str:
    id = request.match_info["id"]
    if not _ID.fullmatch(id):
        raise BadRequest(f"{id[:80]!r} is no id of a relay: it must be up to 64 letters, digits and -")
    return id


async def _object(request: web.Request) -> Mapping[str, Any]:
    body = await request.read()
    value = parse_json(body) if len(body) <= SUBSCRIPTION_BODY_BYTES else None
    if not isinstance(value, dict):
        raise BadRequest('the body must be an object such as {"streams": {"s": "http://host/streams/s"}, "load": 0.5}')
    return value


def _streams(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict) or not value or len(value) > RELAY_STREAMS:
        raise InvalidField("streams", f"streams must be an object with 1 to {RELAY_STREAMS} names and their addresses")
    return {check_stream_name(name): _address(each) for name, each in value.items()}


def _address(value: object) -> str:
    try:
        parts = urlsplit(value) if isinstance(value, str) and value.isascii() and value.isprintable() else None
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidField(
            "streams", f"{value!r} is not the address of a stream, such as http://host:8080/streams/name"
        )
    return str(value)


def _load(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidField("load", f"load must be a number from 0 to 1, not {value!r}")
    return float(value)


def _free(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidField("free", f"free must be a number of clients, not {value!r}")
    return value
