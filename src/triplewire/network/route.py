"""A route at work: it listens upstream, publishes downstream, and records its position on disk.

The range of positions is written down before its events are published. A relay that ends before the acknowledgement
publishes the same events again with the same idempotency key, and the edge downstream stores them once. At most one
publication is under way.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

import orjson

from triplewire.client import AsyncClient
from triplewire.config.files import file_lock, replace_file
from triplewire.model.clock import Clock
from triplewire.model.errors import Conflict, InputError, StorageFull, TooManyRequests, TriplewireError, Unavailable
from triplewire.network import transit
from triplewire.network.declaration import RelayRoute
from triplewire.network.enrichers import Enricher, enrich_events
from triplewire.network.transit import PATH_HEADER, BoundedBuffer, TransitEvent
from triplewire.rdf.ztreamy import MEDIA_TYPE

RELAY_EVENTS: Final = 500
"""Events that a relay publishes at once: a transaction of some milliseconds. What came while it was under way is the
next."""

RELAY_BYTES: Final = 1024 * 1024
"""Their bodies. Twice as much may have been heard and wait, for each strand; then the edge above waits."""

RELAY_PAUSE_FIRST: Final = 0.2
"""Seconds at most before a relay tries again what has just failed; twice as long each time."""

RELAY_PAUSE_LONGEST: Final = 15.0
"""Seconds at most between two attempts, however many have failed: an edge that is back is found within them."""


# Tallies: what a strand has done so far, and how it is.

RouteState = Literal["connecting", "listening", "waiting", "refused"]


@dataclass
class RouteStatus:
    """Counts from the start of the process on. `changed` is called after each change that somebody may want to see."""

    strand: RelayRoute
    state: RouteState = "connecting"
    position: str | None = None
    """Of the edge above; everything up to it is below."""
    events: int = 0
    batches: int = 0
    loops: int = 0
    """Events that had been in the target stream before, and were left out."""
    far: int = 0
    """Events with too many stations behind them, which were left out."""
    gaps: int = 0
    refused: int = 0
    """Events that the edge below does not take."""
    breaks: int = 0
    """Times that either side was not there."""
    trouble: str | None = None
    """The last of them, while it lasts."""
    changed: Callable[[], None] = field(default=lambda: None, repr=False)

    def turn(self, state: RouteState, trouble: str | None = None) -> None:
        self.state, self.trouble = state, trouble
        self.changed()

    def document(self) -> dict[str, Any]:
        counts = ("state", "position", "events", "batches", "loops", "far", "gaps", "refused", "breaks", "trouble")
        said = {name: getattr(self, name) for name in counts}
        return {"from": str(self.strand.source), "to": str(self.strand.target), **said}


# Ledgers: how far each strand is, on the disk, so that a relay goes on after whatever ended it.
#
# Before some events are published it is written down which they are. If the relay ends before it hears the answer, it
# publishes the very same events again, with the same key, and the edge below, which knows the key, stores them once.

_POSITION = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class RoutePosition:
    """Everything up to `after` is below. What is above it up to `upto`, if that is said, may be below as well."""

    upstream: str
    """The id of the edge above, whose positions these are."""
    after: str
    upto: str | None = None

    def before(self, position: str) -> bool:
        """Whether it would be at a later place there. A time, or another word for a place, is before all positions."""
        return not _POSITION.fullmatch(self.after) or self.after < position


class PositionStore:
    """One record for each strand, a small file that is replaced at once; a reader sees the old or the new."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, key: str) -> RoutePosition | None:
        """The record that was kept last, or None. Raises Conflict for a file that is none of ours."""
        path = self._path(key)
        try:
            return RoutePosition(**orjson.loads(path.read_bytes())["record"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise Conflict(f"{path} holds no position of a relay ({error}); remove it to begin anew") from None

    def intend(self, key: str, name: str, record: RoutePosition) -> None:
        """Keep a record before what it speaks of is published. On return it survives the machine's end."""
        self._write(key, name, record, durable=True)

    def settle(self, key: str, name: str, record: RoutePosition) -> None:
        """Keep a record after it was published. Should it be lost, the intention is there, and is done again."""
        self._write(key, name, record, durable=False)

    def identity(self) -> str:
        """By which edges know this relay; made when it is asked for the first time."""
        path = self._folder / "id"
        if not path.exists():
            replace_file(path, uuid4().hex.encode(), durable=True)
        return path.read_text()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Raises Conflict if another process holds it: two that carry the same would only be in each other's way."""
        with file_lock(self._folder / "lock", f"another relay is at work with the positions in {self._folder}"):
            yield

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _write(self, key: str, name: str, record: RoutePosition, *, durable: bool) -> None:
        replace_file(self._path(key), orjson.dumps({"strand": name, "record": asdict(record)}), durable=durable)


# Pauses: how long to wait before trying again, longer each time, and not the same for all who wait.

Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True)
class Backoff:
    """Time and chance are given, so that a test needs neither."""

    first: float = RELAY_PAUSE_FIRST
    longest: float = RELAY_PAUSE_LONGEST
    chance: Callable[[], float] = random.random
    sleep: Sleep = asyncio.sleep

    def length(self, failures: int) -> float:
        """Seconds after so many failures in a row, from 1 on: between half and the whole of what doubles each time."""
        whole: float = min(self.longest, self.first * 2 ** min(failures - 1, 30))
        return whole * (1 + self.chance()) / 2

    async def wait(self, failures: int) -> None:
        await self.sleep(self.length(failures))


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EdgeIdentities:
    """The ids of the two edges, as they tell them themselves."""

    upstream: str
    downstream: str
    head: str
    """The position at which the edge above was then."""


@dataclass
class RouteRunner:
    """Listens above, publishes below, and writes down how far it is. Never more than one publication is under way."""

    strand: RelayRoute
    above: AsyncClient
    below: AsyncClient
    ledger: PositionStore
    clock: Clock
    enrichers: tuple[Enricher, ...] = ()
    pauses: Backoff = field(default_factory=Backoff)
    tally: RouteStatus = field(init=False)

    def __post_init__(self) -> None:
        self.tally = RouteStatus(self.strand)

    async def go(self) -> None:
        """Carry until cancelled; or until one of the edges says that what is asked of it can never be."""
        failures = 0
        while True:
            carried = self.tally.batches
            try:
                await self._carry()
            except (InputError, ExceptionGroup) as error:
                logger.error("%s: %s", self.strand, error)
                return self.tally.turn("refused", str(error))
            except (Conflict, StorageFull, TooManyRequests, Unavailable) as error:
                failures = 1 if self.tally.batches > carried else failures + 1
                self.tally.breaks += 1
                self.tally.turn("waiting", str(error))
                logger.warning("%s: %s", self.strand, error)
            await self.pauses.wait(failures)

    async def _carry(self) -> None:
        """One connection, from where the ledger says, until something breaks."""
        self.tally.turn("connecting")
        ends = await self._ends()
        record = self._record(ends)
        inbox = BoundedBuffer(2 * RELAY_BYTES)
        listening = asyncio.create_task(self._listen(record, ends, inbox))
        try:
            while True:
                taken = await inbox.take(RELAY_EVENTS, RELAY_BYTES, record.upto)
                record = await self._deliver(taken, record, ends)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _ends(self) -> EdgeIdentities:
        upstream, downstream = await asyncio.gather(self.above.health(), self.below.health())
        return EdgeIdentities(upstream["edge"], downstream["edge"], upstream["head"])

    def _record(self, ends: EdgeIdentities) -> RoutePosition:
        """Where to go on. Positions of an edge that was another one are worth nothing."""
        found = self.ledger.load(self.strand.key)
        if found is not None and found.upstream == ends.upstream:
            return found
        if found is not None:
            logger.warning("%s: the edge above is another one now; beginning at %s", self.strand, self.strand.after)
        # A cut before the first event must not make it a later now.
        record = RoutePosition(ends.upstream, ends.head if self.strand.after == "now" else self.strand.after)
        self.ledger.intend(self.strand.key, str(self.strand), record)
        return record

    async def _listen(self, record: RoutePosition, ends: EdgeIdentities, inbox: BoundedBuffer) -> None:
        """Bring what is heard into the inbox. It is closed with what ended the listening."""
        strand = self.strand
        heard = self.above.listen(
            strand.source.stream, record.after, parameters=strand.filters, relay=self.ledger.identity()
        )
        try:
            async with aclosing(heard) as messages:
                self.tally.turn("listening")
                async for message in messages:
                    if message.event == "event":
                        await inbox.put(transit.parse_event_message(message.data))
                    elif message.event == "position":
                        await inbox.put(transit.make_position_marker(message.data["position"]))
                    elif message.event == "failed":
                        raise Unavailable(f"{strand.source} failed: {message.data['detail']}")
                    elif message.event == "gap":
                        await inbox.put(self._gap(message.data, ends))
            await inbox.close(Unavailable(f"{strand.source} ended"))
        except TriplewireError as error:
            await inbox.close(error)

    def _gap(self, told: dict[str, str], ends: EdgeIdentities) -> TransitEvent:
        self.tally.gaps += 1
        logger.warning("%s: events after %s are gone; going on from %s", self.strand, told["asked"], told["earliest"])
        return transit.make_gap_event(told, self.strand.source, ends.upstream, self.clock.now())

    async def _deliver(self, taken: list[TransitEvent], record: RoutePosition, ends: EdgeIdentities) -> RoutePosition:
        """Publish, and be sure of it. The intention is written down first, unless it is one that was left over."""
        upto = record.upto or max(each.position for each in taken)
        intended, full = replace(record, upto=upto), [each for each in taken if not each.empty]
        if not full and not record.before(upto):
            return record
        if record.upto is None and full:
            self.ledger.intend(self.strand.key, str(self.strand), intended)
        fit = self._enriched([each for each in (self._stamped(each, ends) for each in full) if each is not None])
        if fit:
            await self._publish(fit, self._key(intended))
        done = RoutePosition(record.upstream, upto)
        self.ledger.settle(self.strand.key, str(self.strand), done)
        self.tally.batches += bool(full)
        self.tally.position = upto
        self.tally.turn("listening")
        return done

    def _key(self, intended: RoutePosition) -> str:
        return f"relay/{intended.upstream}/{self.strand.key}/{intended.after}-{intended.upto}"

    def _stamped(self, parcel: TransitEvent, ends: EdgeIdentities) -> TransitEvent | None:
        """The parcel with the station that it comes from; None if it has been where it would go, or comes too far."""
        trail = parcel.trail.then(ends.upstream, self.strand.source.stream)
        if trail.visits(ends.downstream, self.strand.target.stream):
            self.tally.loops += 1
            return None
        if trail.long:
            self.tally.far += 1
            logger.warning("%s: %s has come through %s stations", self.strand, parcel.event, len(trail.stations))
            return None
        return replace(parcel, headers={**parcel.headers, PATH_HEADER: str(trail)})

    def _enriched(self, fit: list[TransitEvent]) -> list[TransitEvent]:
        if not self.enrichers or not fit:
            return fit
        events = enrich_events([each.opened() for each in fit], self.enrichers)
        return [replace(each, body=transit.encode_event_body(event)) for each, event in zip(fit, events, strict=True)]

    async def _publish(self, fit: list[TransitEvent], key: str) -> None:
        """All at once; where that is refused each by itself, so that one that cannot be does not hold up the others."""
        try:
            await self._send(fit, key)
        except (InputError, Conflict) as error:
            if len(fit) > 1:
                for number, each in enumerate(fit):
                    await self._publish([each], f"{key}/{number}")
                return
            self.tally.refused += 1
            logger.error("%s: %s is not taken: %s", self.strand, fit[0].event, error)

    async def _send(self, fit: list[TransitEvent], key: str) -> None:
        await self.below.publish(self.strand.target.stream, transit.encode_items(fit), MEDIA_TYPE, key=key)
        self.tally.events += len(fit)
