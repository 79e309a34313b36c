"""The supervisor: it runs edges and pipeline as child processes, restarts them, and replaces edges one by one."""

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
"""Seconds that the replacement of one edge may take before `triplewire restart` gives up: a few are usual."""

POLL_SECONDS = 0.1


@dataclass
class Supervisor:
    """The whole broker: `start`, then `watch` until `stop`."""

    settings: Settings
    clock: Clock = field(default_factory=SystemClock)
    restart: Flag = field(default_factory=Flag)
    """Set this flag to replace the edges one by one, without an interruption."""

    def __post_init__(self) -> None:
        self.edges = EdgePool(self.settings, self.clock)
        self.pipeline = ChildProcess("pipeline", self.settings, self.clock)

    def start(self) -> None:
        """Start all processes. Raises errors that no restart would mend: Unavailable if the address is in use,
        BadRequest if the edge would be open to other machines or the certificate cannot be used."""
        check_auth(self.settings)
        prepare_directory(self.settings.data)
        self.edges.start()
        self.pipeline.start()
        write_heartbeat(self.settings.supervisor_heartbeat, self.clock, "ready")

    def ready(self) -> bool:
        """Whether all edges and the pipeline of this start have reported that they are ready."""
        heartbeat = self.heartbeat()
        return heartbeat.state == "ready" and heartbeat.pid == self.pipeline.pid and self.edges.ready()

    def wait_ready(self, stop: Flag, attempts: int = 3) -> None:
        """Wait until it is ready or `stop` is set. Raises Unavailable when a child has failed `attempts` times."""
        while not self.ready() and not stop.wait(POLL_SECONDS):
            self.step()
            for child in (*self.edges.children, self.pipeline):
                if child.failures >= attempts:
                    raise Unavailable(f"the {child.name} does not start; see {child.output}:\n{child.read_tail()}")

    def heartbeat(self) -> Heartbeat:
        return read_heartbeat(self.settings.heartbeat)

    def watch(self, stop: Flag) -> None:
        """Restart children that end, until `stop` is set."""
        while not stop.wait(POLL_SECONDS):
            self.step()

    def step(self) -> None:
        """Restart children that have ended, and go on with a rolling restart."""
        if self.restart.is_set():
            self.restart.clear()
            self.edges.restart()
        self.edges.step()
        self.pipeline.watch()

    def stop(self) -> None:
        """Stop the pipeline first, so that it finishes its batch while the edges drain."""
        self.pipeline.ask_to_stop()
        self.edges.stop()
        self.pipeline.wait()
        self.settings.supervisor_heartbeat.unlink(missing_ok=True)


@dataclass(frozen=True)
class RollingRestart:
    """A rolling restart that was requested, and the edges that were running before."""

    settings: Settings
    before: frozenset[int]
    clock: Clock

    @classmethod
    def request(cls, settings: Settings) -> RollingRestart:
        """Ask the supervisor of a data directory. Raises Unavailable if none runs."""
        clock = SystemClock()
        before = frozenset(each.pid for each in read_statuses(settings.edge_statuses, clock))
        supervisor = read_heartbeat(settings.supervisor_heartbeat).pid
        try:
            if not supervisor:
                raise ProcessLookupError
            os.kill(supervisor, signal.SIGHUP)
        except ProcessLookupError:
            raise Unavailable(f"no `triplewire up` runs over {settings.data}; --data names another") from None
        return cls(settings, before, clock)

    def done(self) -> bool:
        """Whether all edges that were running before are replaced."""
        edges = read_statuses(self.settings.edge_statuses, self.clock)
        return any(each.state == "ready" for each in edges) and not self.before & {each.pid for each in edges}

    def wait(self, seconds: float = RESTART_SECONDS) -> None:
        """Wait until it is done. Raises Unavailable if that takes longer than `seconds` per edge."""
        end = self.clock.ticks() + seconds * max(1, len(self.before))
        while not self.done():
            if self.clock.ticks() > end:
                raise Unavailable(f"the edges were not replaced; see {self.settings.data / 'logs' / 'edge.log'}")
            time.sleep(POLL_SECONDS)
