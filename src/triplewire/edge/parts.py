"""What an edge is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from triplewire.config import limits
from triplewire.config.metrics import Metrics
from triplewire.config.status import Heartbeat
from triplewire.config.tracing import Tracer
from triplewire.edge.clients.allowances import Allowances
from triplewire.edge.company.identities import new_identity
from triplewire.edge.company.pressures import Pressure
from triplewire.edge.company.standings import Place
from triplewire.edge.door import Authenticator, Guests, Witness
from triplewire.edge.hooks.offices import Outbound
from triplewire.edge.past.recalls import Recall
from triplewire.edge.ports import Answers, Commits, Entries, Watching
from triplewire.edge.shapes.gates import Gate
from triplewire.edge.sieves import Filters
from triplewire.edge.telling.windows import Windows
from triplewire.history.dataset_statistics import DatasetStatistics
from triplewire.matching.event_history import ColdTier
from triplewire.model.clock import Clock
from triplewire.storage.log.ports import Outbox
from triplewire.storage.outbox import MemoryOutbox
from triplewire.storage.registry.ports import Registry


class Idle:
    """Watches what never changes."""

    def changed(self) -> bool:
        return False


@dataclass(frozen=True)
class Parts:
    """What an edge is made of. Whoever gives the parts closes them, after the application."""

    commits: Commits
    log: Entries
    registry: Registry
    outbox: Outbox
    answers: Answers
    log_watch: Watching
    outbox_watch: Watching
    heartbeat: Callable[[], Heartbeat]
    clock: Clock
    stored: Callable[[], int] | None = None
    archive: ColdTier | None = None
    """Has the events that the log has let go."""
    recall: Recall = field(default_factory=Recall)
    """How much of streams is remembered for those who come back."""
    routes: Iterable[web.RouteDef] = ()
    """Routes of others, such as control's; their errors become problem documents like ours."""
    slow_outbox: Outbox = field(default_factory=MemoryOutbox)
    """Of the slow lane, and who watches it; nothing comes by one in memory."""
    slow_watch: Watching = field(default_factory=Idle)
    ongoing_outbox: Outbox = field(default_factory=MemoryOutbox)
    """Likewise, the answers of continuous queries."""
    ongoing_watch: Watching = field(default_factory=Idle)
    services: tuple[str, ...] = ()
    """The endpoints that SERVICE may ask."""
    origins: tuple[str, ...] = ()
    """Of the pages that may use the edge from a browser."""
    filters: Filters | None = None
    """Of the deployment, for those who listen to streams; None for those of all packages that are installed."""
    buffer: int = limits.CLIENT_BUFFER_BYTES
    seats: int = limits.LISTENERS
    windows: Windows = field(default_factory=Windows)
    patience: float = limits.ACK_SECONDS
    metrics: Metrics = field(default_factory=Metrics)
    gate: Gate | None = None
    """Judges what is published to streams that have shapes; closed with the application."""
    repeaters: Path | None = None
    """The folder that edges over one directory share, for what relays tell them."""
    pressure: Pressure | None = None
    """Says whether the edge is near its limits; by default by its seats and its load."""
    identity: str = field(default_factory=new_identity)
    """By which relays know it; the same after a restart."""
    allowances: Allowances | None = None
    """What each client may have; everything where there are none."""
    authenticators: tuple[Authenticator, ...] = ()
    """Who know callers by what they show; the door stands open where there are none."""
    ages: Callable[[str], float | None] = lambda stream: None
    """For how many seconds the events of a stream are kept; None is for good."""
    outbound: Outbound = field(default_factory=Outbound)
    """What it calls others by, who are told by POST."""
    is_open: Callable[[], bool] = lambda: False
    """Whether the door stands open, though there are some."""
    guests: Guests | None = None
    """Sends those away who came in and are welcome no more."""
    witness: Witness | None = None
    """Writes down who did what."""
    census: Callable[[], DatasetStatistics | None] = lambda: None
    """What was counted of all that is kept."""
    traces: Tracer | None = None
    """Where spans are told; None where nobody hears them."""
    place: Place = field(default_factory=Place)
    """Where it stands among the edges over the same stores."""
