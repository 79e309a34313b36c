"""A route at work: it consumes upstream, publishes downstream, and records its position on disk.

The range of positions is written down before its events are published. A relay that ends before the acknowledgement
publishes the same events again with the same idempotency key, and the edge downstream stores them once. At most one
publication is under way.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

import orjson

from triplewire.client import AsyncClient
from triplewire.config.files import file_lock, replace_file
from triplewire.model.clock import Backoff, Clock
from triplewire.model.errors import Conflict, InputError, StorageFull, TooManyRequests, TriplewireError, Unavailable
from triplewire.network import transit
from triplewire.network.declaration import RelayRoute
from triplewire.network.enrichers import Enricher, enrich_events
from triplewire.network.transit import PATH_HEADER, BoundedBuffer, TransitEvent
from triplewire.rdf.ztreamy import MEDIA_TYPE

RELAY_EVENTS: Final = 500
"""Events that a relay publishes at once: a transaction of some milliseconds. Events that arrive meanwhile are the next
batch."""

RELAY_BYTES: Final = 1024 * 1024
"""Bytes of their bodies. Twice as much may be buffered per route; then the edge upstream waits."""

RELAY_PAUSE_FIRST: Final = 0.2
"""Seconds at most before a relay retries; twice as long after each further failure."""

RELAY_PAUSE_LONGEST: Final = 15.0
"""Seconds at most between two attempts: an edge that is back is found within them."""

Sleep = Callable[[float], Awaitable[object]]
RouteState = Literal["connecting", "listening", "waiting", "refused"]

_POSITION = re.compile(r"[0-9a-f]{16}")
logger = logging.getLogger(__name__)


@dataclass
class RouteStatus:
    """State and counts of a route since the start of the process. `changed` is called after each change of state."""

    route: RelayRoute
    changed: Callable[[], None] = field(default=lambda: None, repr=False)
    state: RouteState = "connecting"
    position: str | None = None
    """The position upstream up to which all events are downstream."""
    events: int = 0
    batches: int = 0
    loops: int = 0
    """Events that had been in the target stream before, and were dropped."""
    far: int = 0
    """Events that had come through too many streams, and were dropped."""
    gaps: int = 0
    refused: int = 0
    """Events that the edge downstream refused."""
    breaks: int = 0
    """Times that an edge could not be reached or broke the connection."""
    trouble: str | None = None
    """The error of the last break, while it lasts."""

    def set_state(self, state: RouteState, trouble: str | None = None) -> None:
        self.state, self.trouble = state, trouble
        self.changed()

    def document(self) -> dict[str, Any]:
        names = ("state", "position", "events", "batches", "loops", "far", "gaps", "refused", "breaks", "trouble")
        counts = {name: getattr(self, name) for name in names}
        return {"from": str(self.route.source), "to": str(self.route.target), **counts}


@dataclass(frozen=True)
class RoutePosition:
    """The progress of a route: all events up to `after` are downstream; those up to `intended`, if any, may be."""

    upstream: str
    """The id of the edge upstream, whose positions these are."""
    after: str
    intended: str | None = None

    def before(self, position: str) -> bool:
        """Whether `position` is progress. A time, or a word such as `earliest`, is before all positions."""
        return not _POSITION.fullmatch(self.after) or self.after < position


class PositionStore:
    """A directory with the position of each route, a small file that is replaced atomically, and the relay's id."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, key: str) -> RoutePosition | None:
        """Return the position that was stored last, or None. Raises Conflict for a file that is no position."""
        path = self._path(key)
        try:
            record = orjson.loads(path.read_bytes())
            return RoutePosition(record["upstream"], record["after"], record["intended"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise Conflict(f"{path} holds no position of a relay ({error}); remove it to begin anew") from None

    def intend(self, key: str, name: str, position: RoutePosition) -> None:
        """Store a position before its events are published. On return it survives a power failure."""
        self._write(key, name, position, sync_name=True)

    def settle(self, key: str, name: str, position: RoutePosition) -> None:
        """Store a position after its events were published. After a power failure the file holds this position or the
        intention, never less: the content is synced before it takes the name. The name is not, for the intention does
        as well: its events are published again, with the same key."""
        self._write(key, name, position, sync_name=False)

    def relay_id(self) -> str:
        """Return the id by which edges know this relay; it is created at the first call."""
        path = self._folder / "id"
        if not path.exists():
            replace_file(path, uuid4().hex.encode())
        return path.read_text()

    def lock(self) -> AbstractContextManager[None]:
        """Raises Conflict if another process holds the lock: two relays would publish the same events."""
        return file_lock(self._folder / "lock", f"another relay is at work with the positions in {self._folder}")

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _write(self, key: str, name: str, position: RoutePosition, *, sync_name: bool) -> None:
        replace_file(self._path(key), orjson.dumps({"route": name, **vars(position)}), sync_name=sync_name)


@dataclass(frozen=True)
class EdgeIdentities:
    """The ids of both edges, and the head of the one upstream when they were asked."""

    upstream: str
    downstream: str
    head: str


@dataclass
class RouteRunner:
    """Relays the events of one route until it is cancelled."""

    status: RouteStatus
    upstream: AsyncClient
    downstream: AsyncClient
    positions: PositionStore
    clock: Clock
    enrichers: tuple[Enricher, ...] = ()
    backoff: Backoff = field(default_factory=lambda: Backoff(RELAY_PAUSE_FIRST, RELAY_PAUSE_LONGEST))
    sleep: Sleep = asyncio.sleep

    @property
    def route(self) -> RelayRoute:
        return self.status.route

    async def run(self) -> None:
        """Relay until cancelled, or until an edge refuses a request that no retry can mend."""
        failures = 0
        while True:
            batches = self.status.batches
            try:
                await self._connect()
            except (InputError, ExceptionGroup) as error:
                logger.error("%s: %s", self.route, error)
                return self.status.set_state("refused", str(error))
            except (Conflict, StorageFull, TooManyRequests, Unavailable) as error:
                failures = 1 if self.status.batches > batches else failures + 1
                self.status.breaks += 1
                self.status.set_state("waiting", str(error))
                logger.warning("%s: %s", self.route, error)
            await self.sleep(self.backoff.seconds(failures))

    async def _connect(self) -> None:
        """Relay over one connection, from the stored position on, until it breaks."""
        self.status.set_state("connecting")
        edges = await self._identify_edges()
        position = self._load_position(edges)
        buffer = BoundedBuffer(2 * RELAY_BYTES)
        listening = asyncio.create_task(self._listen(position, edges, buffer))
        try:
            while True:
                batch = await buffer.take(RELAY_EVENTS, RELAY_BYTES, position.intended)
                position = await self._deliver(batch, position, edges)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _identify_edges(self) -> EdgeIdentities:
        upstream, downstream = await asyncio.gather(self.upstream.health(), self.downstream.health())
        return EdgeIdentities(upstream["edge"], downstream["edge"], upstream["head"])

    def _load_position(self, edges: EdgeIdentities) -> RoutePosition:
        """Return the position to resume from. Positions of another edge upstream are worthless."""
        stored = self.positions.load(self.route.key)
        if stored is not None and stored.upstream == edges.upstream:
            return stored
        if stored is not None:
            logger.warning("%s: another edge is upstream now; beginning at %s", self.route, self.route.after)
        # `now` is stored as a position, so that a break before the first event does not make it a later now.
        position = RoutePosition(edges.upstream, edges.head if self.route.after == "now" else self.route.after)
        self.positions.intend(self.route.key, str(self.route), position)
        return position

    async def _listen(self, position: RoutePosition, edges: EdgeIdentities, buffer: BoundedBuffer) -> None:
        """Fill the buffer with the stream upstream, and close it with the error that ended the stream."""
        source, filters = self.route.source, self.route.filters
        stream = self.upstream.listen(
            source.stream, position.after, parameters=filters, relay=self.positions.relay_id()
        )
        try:
            async with aclosing(stream) as messages:
                self.status.set_state("listening")
                async for message in messages:
                    if message.event == "event":
                        await buffer.put(transit.parse_event_message(message.data))
                    elif message.event == "position":
                        await buffer.put(transit.make_position_marker(message.data["position"]))
                    elif message.event == "failed":
                        raise Unavailable(f"{source} failed: {message.data['detail']}")
                    elif message.event == "gap":
                        await buffer.put(self._record_gap(message.data, edges))
            await buffer.close(Unavailable(f"{source} ended"))
        except TriplewireError as error:
            await buffer.close(error)

    def _record_gap(self, gap: dict[str, str], edges: EdgeIdentities) -> TransitEvent:
        self.status.gaps += 1
        logger.warning(
            "%s: events after %s are no longer available; going on from %s", self.route, gap["asked"], gap["earliest"]
        )
        return transit.make_gap_event(gap, self.route.source, edges.upstream, self.clock.now())

    async def _deliver(
        self, batch: list[TransitEvent], position: RoutePosition, edges: EdgeIdentities
    ) -> RoutePosition:
        """Publish a batch and store the new position. The intention is stored first, unless it is there already."""
        last = position.intended or max(each.position for each in batch)
        intention, events = replace(position, intended=last), [each for each in batch if not each.empty]
        if not events and not position.before(last):
            return position
        if position.intended is None and events:
            self.positions.intend(self.route.key, str(self.route), intention)
        accepted = self._enrich([each for each in (self._extend_path(each, edges) for each in events) if each])
        if accepted:
            await self._publish(accepted, self._idempotency_key(intention))
        done = RoutePosition(position.upstream, last)
        self.positions.settle(self.route.key, str(self.route), done)
        self.status.batches += bool(events)
        self.status.position = last
        self.status.set_state("listening")
        return done

    def _idempotency_key(self, intention: RoutePosition) -> str:
        return f"relay/{intention.upstream}/{self.route.key}/{intention.after}-{intention.intended}"

    def _extend_path(self, event: TransitEvent, edges: EdgeIdentities) -> TransitEvent | None:
        """Return the event with its source in the path; None if it has been in the target, or its path is too long."""
        path = event.path.then(edges.upstream, self.route.source.stream)
        if path.visits(edges.downstream, self.route.target.stream):
            self.status.loops += 1
            return None
        if path.too_long:
            self.status.far += 1
            logger.warning("%s: %s is dropped: it came through %s streams", self.route, event.event, len(path.hops))
            return None
        return replace(event, headers={**event.headers, PATH_HEADER: str(path)})

    def _enrich(self, batch: list[TransitEvent]) -> list[TransitEvent]:
        if not self.enrichers or not batch:
            return batch
        events = enrich_events([each.parse() for each in batch], self.enrichers)
        return [replace(each, body=transit.encode_event_body(event)) for each, event in zip(batch, events, strict=True)]

    async def _publish(self, batch: list[TransitEvent], key: str) -> None:
        """Publish a batch in one request; if that is refused, event by event, so that only bad ones are left out."""
        try:
            body = transit.encode_items(batch)
            await self.downstream.publish(self.route.target.stream, body, MEDIA_TYPE, key=key)
            self.status.events += len(batch)
        except (InputError, Conflict) as error:
            if len(batch) > 1:
                for number, each in enumerate(batch):
                    await self._publish([each], f"{key}/{number}")
                return
            self.status.refused += 1
            logger.error("%s: %s is refused: %s", self.route, batch[0].event, error)
