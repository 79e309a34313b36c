"""Everything on one machine: the edge and the pipeline as children of one process that watches them."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from threading import Event as Flag

from triplewire.clock import Clock, SystemClock
from triplewire.compose.children import Child, stop_all
from triplewire.config import Settings
from triplewire.errors import Unavailable
from triplewire.telemetry.heartbeats import Heartbeat, last

LOOK_SECONDS = 0.1


@dataclass
class Up:
    """The whole broker. `start`, then `watch` until `stop`."""

    settings: Settings
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        self.edge = Child("edge", self.settings, self.clock)
        self.pipeline = Child("pipeline", self.settings, self.clock)

    def start(self) -> None:
        """Start both. Raises Unavailable if the address is taken, which no restart would mend."""
        self.settings.data.mkdir(parents=True, exist_ok=True)
        _check_free(self.settings)
        self.edge.start()
        self.pipeline.start()

    def ready(self) -> bool:
        """Whether both run and the pipeline of this start has said that it is ready."""
        beat = self.heartbeat()
        return self.edge.pid is not None and beat.state == "ready" and beat.pid == self.pipeline.pid

    def wait_ready(self, stop: Flag, attempts: int = 3) -> None:
        """Until it is ready or `stop` is set. Raises Unavailable when a child has failed that many times."""
        while not self.ready() and not stop.wait(LOOK_SECONDS):
            self.look()
            for child in (self.edge, self.pipeline):
                if child.failures >= attempts:
                    raise Unavailable(f"the {child.name} does not start; see {child.output}:\n{child.last_words()}")

    def heartbeat(self) -> Heartbeat:
        return last(self.settings.heartbeat)

    def watch(self, stop: Flag) -> None:
        """Look after the children until `stop` is set."""
        while not stop.wait(LOOK_SECONDS):
            self.look()

    def look(self) -> None:
        """One look: what ended by itself is started again."""
        for child in (self.edge, self.pipeline):
            child.watch()

    def stop(self) -> None:
        """The pipeline first, so that nothing that the edge took in is left half-way."""
        stop_all((self.pipeline, self.edge))


def _check_free(settings: Settings) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise Unavailable(
                f"{settings.host}:{settings.port} cannot be used ({error.strerror}); "
                f"stop what listens there or choose another with --port"
            ) from error
