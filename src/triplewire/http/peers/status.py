"""Status and identity of edges that serve one directory: `/edges` reports all of them, whichever is asked, and
`Edge-Id` names the directory in every answer.

Relays use the identity to avoid bringing an edge what came from it. Edges over one directory share one log, and so one
identity.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex

import orjson
import psutil
from aiohttp import web

from triplewire.config.files import replace_file, sync
from triplewire.config.metrics import Metrics, StreamTraffic
from triplewire.config.status import (
    STATUS_SECONDS,
    EdgeStatus,
    read_statuses,
    remove_status,
    status_order,
    write_status,
)
from triplewire.http.openapi import resource_operations, serves
from triplewire.http.ports import ThreadPool
from triplewire.model.clock import Clock

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EdgeLocation:
    """Where an edge stands among others: its name, and the folder where each tells of itself, or None."""

    name: str = field(default_factory=lambda: str(os.getpid()))
    folder: Path | None = None
    door: str = ""
    """The address that it listens on, which others may share."""


class EdgeStatusReporter:
    """Tells of this edge, and of the others."""

    def __init__(
        self,
        place: EdgeLocation,
        clock: Clock,
        metrics: Metrics,
        seats: int,
        listeners: Callable[[], Mapping[str, int]],
        flows: Callable[[], Sequence[StreamTraffic]],
    ) -> None:
        self.place = place
        self.state = "starting"
        self._clock = clock
        self._metrics = metrics
        self._seats = seats
        self._listeners = listeners
        self._flows = flows
        self._since = clock.now()
        self._process = psutil.Process()
        self._others: list[EdgeStatus] = []

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/edges", self.edges)]

    def own(self) -> EdgeStatus:
        """As it is at this moment, without what a scrape gets."""
        listeners = dict(self._listeners())
        for of, count in listeners.items():
            self._metrics.listeners.labels(of).set(count)
        return EdgeStatus(
            name=self.place.name,
            pid=self._process.pid,
            door=self.place.door,
            state=self.state,
            since=self._since,
            at=self._clock.now(),
            cpu=round(time.process_time(), 3),
            memory=self._process.memory_info().rss,
            listeners=listeners,
            seats=self._seats,
            published=int(self._metrics.published()),
            streams=tuple(self._flows()),
        )

    def others(self) -> list[EdgeStatus]:
        """What the others told last, a second ago at most where they are well."""
        found = read_statuses(self.place.folder, self._clock) if self.place.folder else []
        return [each for each in found if each.name != self.place.name]

    def neighbours(self) -> list[int]:
        """How many listen to each of the other edges at the same door, as was told last."""
        return [each.taken for each in self._others if each.door == self.place.door and each.state == "ready"]

    async def keep(self) -> None:
        """Tell again and again, until cancelled; then no more is told of this edge."""
        folder = self.place.folder
        if folder is None:
            return
        workers = ThreadPool(1, "edge-standing")
        try:
            while True:
                await workers.run(self._tell, folder, self.own())
                await asyncio.sleep(STATUS_SECONDS)
        finally:
            workers.close()
            remove_status(folder, self.place.name)

    def tell(self, state: str) -> None:
        """Say at once that the state is another."""
        self.state = state
        if self.place.folder is not None:
            self._tell(self.place.folder, self.own())

    def _tell(self, folder: Path, standing: EdgeStatus) -> None:
        try:
            write_status(folder, replace(standing, metrics=self._metrics.exposition().decode()))
            self._others = self.others()
        except OSError:
            # A full disk: the edge goes on, others see that it is silent.
            logger.warning("how this edge stands could not be told", exc_info=True)

    @serves(resource_operations.EDGES)
    async def edges(self, request: web.Request) -> web.Response:
        """Every edge by itself."""
        found = [self.own(), *await asyncio.to_thread(self.others)]
        return _json({"edges": [each.document() for each in sorted(found, key=status_order)]})


def _json(value: object) -> web.Response:
    return web.Response(body=orjson.dumps(value), content_type="application/json")


# Identities: by what an edge is known to relays, which must not bring it what came from it.

EDGE_ID = "Edge-Id"


def generate_identity() -> str:
    return token_hex(8)


def load_identity(path: Path) -> str:
    """The identity that a data directory keeps in a file, which the first who asks makes. Edges that share the
    directory share its log, and so they are one to everybody else."""
    if not path.exists():
        made = path.with_name(f"{path.name}.{generate_identity()}")
        replace_file(made, generate_identity().encode())
        try:
            # A link is made only where there is none yet, and the file that it names is whole.
            path.hardlink_to(made)
        except FileExistsError:
            pass
        finally:
            made.unlink()
        sync(path.parent)
    return path.read_text().strip()


def add_identity_header(app: web.Application, identity: str) -> None:
    """Let every answer of an application say whose it is."""

    async def say(request: web.Request, response: web.StreamResponse) -> None:
        response.headers[EDGE_ID] = identity

    app.on_response_prepare.append(say)
