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

import psutil
from aiohttp import web

from triplewire.config.files import replace_file, sync
from triplewire.config.metrics import Metrics
from triplewire.config.status import EdgeState, EdgeStatus, read_statuses, remove_status, status_order, write_status
from triplewire.config.traffic import StreamTraffic
from triplewire.http.openapi import resource_operations, routes_of, serves
from triplewire.http.ports import ThreadPool
from triplewire.http.resources.bodies import json_response
from triplewire.model.clock import Clock

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EdgeLocation:
    """An edge among those that serve one directory: its name, and the folder of their statuses, or None."""

    name: str = field(default_factory=lambda: str(os.getpid()))
    folder: Path | None = None
    address: str = ""
    """Address that it listens on, which others may share."""


class EdgeStatusReporter:
    """Writes the status of this edge, and reads those of others."""

    def __init__(
        self,
        location: EdgeLocation,
        clock: Clock,
        metrics: Metrics,
        max_listeners: int,
        listeners: Callable[[], Mapping[str, int]],
        flows: Callable[[], Sequence[StreamTraffic]],
    ) -> None:
        self.location = location
        self.state: EdgeState = "starting"
        self._clock = clock
        self._metrics = metrics
        self._max_listeners = max_listeners
        self._listeners = listeners
        self._flows = flows
        self._since = clock.now()
        self._process = psutil.Process()
        self._others: list[EdgeStatus] = []
        self._threads = ThreadPool(1, "edge-status")

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.edges)

    def own(self) -> EdgeStatus:
        """Return the status of this edge as it is now, without its metrics."""
        listeners = dict(self._listeners())
        for kind, count in listeners.items():
            self._metrics.listeners.labels(kind).set(count)
        return EdgeStatus(
            name=self.location.name,
            pid=self._process.pid,
            address=self.location.address,
            state=self.state,
            since=self._since,
            at=self._clock.now(),
            cpu=round(time.process_time(), 3),
            memory=self._process.memory_info().rss,
            listeners=listeners,
            max_listeners=self._max_listeners,
            published=int(self._metrics.published()),
            streams=tuple(self._flows()),
        )

    def others(self) -> list[EdgeStatus]:
        """Return the last statuses of the others, a second old at most while they work."""
        statuses = read_statuses(self.location.folder, self._clock) if self.location.folder else []
        return [each for each in statuses if each.name != self.location.name]

    def neighbours(self) -> list[int]:
        """Return the number of listeners of each of the other edges on the same address, as last read."""
        return [
            each.connected for each in self._others if each.address == self.location.address and each.state == "ready"
        ]

    async def step(self) -> None:
        """Write the status, and read those of others. Called by a worker, every `STATUS_SECONDS`."""
        if self.location.folder is not None:
            await self._threads.run(self._write, self.location.folder, self.own())

    async def close(self) -> None:
        """Remove the status."""
        self._threads.close()
        if self.location.folder is not None:
            remove_status(self.location.folder, self.location.name)

    def change_state(self, state: EdgeState) -> None:
        """Write at once that the state is another."""
        self.state = state
        if self.location.folder is not None:
            self._write(self.location.folder, self.own())

    def _write(self, folder: Path, status: EdgeStatus) -> None:
        try:
            write_status(folder, replace(status, metrics=self._metrics.exposition().decode()))
            self._others = self.others()
        except OSError:
            # The disk is full: the edge goes on, and others see that its status is old.
            logger.warning("the status of this edge could not be written", exc_info=True)

    @serves(resource_operations.EDGES)
    async def edges(self, request: web.Request) -> web.Response:
        """List every edge."""
        statuses = [self.own(), *await asyncio.to_thread(self.others)]
        return json_response({"edges": [each.document() for each in sorted(statuses, key=status_order)]})


EDGE_ID = "Edge-Id"


def generate_identity() -> str:
    return token_hex(8)


def load_identity(path: Path) -> str:
    """Return the identity in a file of a data directory; the first process that asks makes it. It survives a power
    failure: an edge with another identity would get its own events back from relays."""
    if not path.exists():
        scratch = path.with_name(f"{path.name}.{generate_identity()}")
        replace_file(scratch, generate_identity().encode())
        try:
            # A link is made only where there is none yet, and the file that it names is whole.
            path.hardlink_to(scratch)
        except FileExistsError:
            pass
        finally:
            scratch.unlink()
        sync(path.parent)
    return path.read_text().strip()


def add_identity_header(app: web.Application, identity: str) -> None:
    """Add the identity of the edge to every response."""

    async def add_header(request: web.Request, response: web.StreamResponse) -> None:
        response.headers[EDGE_ID] = identity

    app.on_response_prepare.append(add_header)
