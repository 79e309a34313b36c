"""The supervisor: edges and pipeline on one machine as children of one process that watches them, and the request for
a rolling restart.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from threading import Event as Flag
from typing import Final

from triplewire.config import Settings
from triplewire.config.files import prepare_directory
from triplewire.config.status import Heartbeat, read_heartbeat, read_statuses, write_heartbeat
from triplewire.model.clock import Clock, SystemClock
from triplewire.model.errors import Unavailable
from triplewire.service.access import check_auth
from triplewire.service.processes import ChildProcess, EdgePool

RESTART_SECONDS: Final = 60.0
"""How long the replacement of one edge may take before `triplewire restart` gives up: a few seconds are usual."""


LOOK_SECONDS = 0.1


@dataclass
class Supervisor:
    """The whole broker. `start`, then `watch` until `stop`."""

    settings: Settings
    clock: Clock = field(default_factory=SystemClock)
    restart: Flag = field(default_factory=Flag)
    """To be set to replace the edges, one after the other, while all goes on."""

    def __post_init__(self) -> None:
        self.edges = EdgePool(self.settings, self.clock)
        self.pipeline = ChildProcess("pipeline", self.settings, self.clock)

    def start(self) -> None:
        """Start all. Raises what no restart would mend: Unavailable if the address is taken, BadRequest where everyone
        could come in, or where the certificate cannot be used."""
        check_auth(self.settings)
        prepare_directory(self.settings.data)
        self.edges.start()
        self.pipeline.start()
        write_heartbeat(self.settings.supervisor_heartbeat, self.clock, "ready")

    def ready(self) -> bool:
        """Whether all edges and the pipeline of this start have said that they are ready."""
        heard = self.heartbeat()
        return heard.state == "ready" and heard.pid == self.pipeline.pid and self.edges.ready()

    def wait_ready(self, stop: Flag, attempts: int = 3) -> None:
        """Until it is ready or `stop` is set. Raises Unavailable when a child has failed that many times."""
        while not self.ready() and not stop.wait(LOOK_SECONDS):
            self.look()
            for child in (*self.edges.children, self.pipeline):
                if child.failures >= attempts:
                    raise Unavailable(f"the {child.name} does not start; see {child.output}:\n{child.last_words()}")

    def heartbeat(self) -> Heartbeat:
        return read_heartbeat(self.settings.heartbeat)

    def watch(self, stop: Flag) -> None:
        """Look after the children until `stop` is set."""
        while not stop.wait(LOOK_SECONDS):
            self.look()

    def look(self) -> None:
        """One look: what ended by itself is started again."""
        if self.restart.is_set():
            self.restart.clear()
            self.edges.restart()
        self.edges.look()
        self.pipeline.watch()

    def stop(self) -> None:
        """The pipeline first, so that nothing that the edges took in is left half-way."""
        self.pipeline.ask_to_stop()
        self.edges.stop()
        self.pipeline.wait()
        self.settings.supervisor_heartbeat.unlink(missing_ok=True)


# Restarts: edges that `up` started are replaced one after the other, while clients go on.

_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class RollingRestart:
    """One that was asked for, and the processes that were there before."""

    settings: Settings
    before: frozenset[int]
    clock: Clock

    @classmethod
    def request(cls, settings: Settings) -> RollingRestart:
        """Ask the process that watches over the edges. Raises Unavailable where none does."""
        clock = SystemClock()
        before = frozenset(each.pid for each in read_statuses(settings.edge_statuses, clock))
        supervisor = read_heartbeat(settings.supervisor_heartbeat).pid
        try:
            if not supervisor:
                raise ProcessLookupError
            os.kill(supervisor, signal.SIGHUP)
        except ProcessLookupError:
            raise Unavailable(f"no `triplewire up` watches over {settings.data}; say which with --data") from None
        return cls(settings, before, clock)

    def done(self) -> bool:
        """Whether others have taken the places of all of them."""
        found = read_statuses(self.settings.edge_statuses, self.clock)
        return any(each.state == "ready" for each in found) and not self.before & {each.pid for each in found}

    def wait(self, seconds: float = RESTART_SECONDS) -> None:
        """Until it is done. Raises Unavailable if that takes too long."""
        end = self.clock.ticks() + seconds * max(1, len(self.before))
        while not self.done():
            if self.clock.ticks() > end:
                raise Unavailable(f"the edges were not replaced; see {self.settings.data / 'logs' / 'edge.log'}")
            time.sleep(_LOOK_SECONDS)
