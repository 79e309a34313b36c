"""Everything on one machine: edges and the pipeline as children of one process that watches them."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event as Flag

from triplewire.compose.children import Child
from triplewire.compose.doors import check_door
from triplewire.compose.edges import Edges
from triplewire.config import Settings
from triplewire.config.files import prepare_directory
from triplewire.config.status import Heartbeat, read_heartbeat, write_heartbeat
from triplewire.model.clock import Clock, SystemClock
from triplewire.model.errors import Unavailable

LOOK_SECONDS = 0.1


@dataclass
class Up:
    """The whole broker. `start`, then `watch` until `stop`."""

    settings: Settings
    clock: Clock = field(default_factory=SystemClock)
    restart: Flag = field(default_factory=Flag)
    """To be set to replace the edges, one after the other, while all goes on."""

    def __post_init__(self) -> None:
        self.edges = Edges(self.settings, self.clock)
        self.pipeline = Child("pipeline", self.settings, self.clock)

    def start(self) -> None:
        """Start all. Raises what no restart would mend: Unavailable if the address is taken, BadRequest where everyone
        could come in, or where the certificate cannot be used."""
        check_door(self.settings)
        prepare_directory(self.settings.data)
        self.edges.start()
        self.pipeline.start()
        write_heartbeat(self.settings.supervision, self.clock, "ready")

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
        self.settings.supervision.unlink(missing_ok=True)
