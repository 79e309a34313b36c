"""Runs: one strand at work, for as long as the relay is."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from triplewire.client import AsyncClient
from triplewire.codec.ztreamy import MEDIA_TYPE
from triplewire.config import limits
from triplewire.model.clock import Clock
from triplewire.model.errors import Conflict, InputError, StorageFull, TooManyRequests, TriplewireError, Unavailable
from triplewire.relay import parcels
from triplewire.relay.enrichers import Enricher, enriched
from triplewire.relay.inboxes import Inbox
from triplewire.relay.ledgers import Ledger, Record
from triplewire.relay.parcels import Parcel
from triplewire.relay.pauses import Pauses
from triplewire.relay.strands import Strand
from triplewire.relay.tallies import Tally
from triplewire.relay.trails import HEADER

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ends:
    """The ids of the two edges, as they tell them themselves."""

    upstream: str
    downstream: str
    head: str
    """The position at which the edge above was then."""


@dataclass
class Run:
    """Listens above, publishes below, and writes down how far it is. Never more than one publication is under way."""

    strand: Strand
    above: AsyncClient
    below: AsyncClient
    ledger: Ledger
    clock: Clock
    enrichers: tuple[Enricher, ...] = ()
    pauses: Pauses = field(default_factory=Pauses)
    tally: Tally = field(init=False)

    def __post_init__(self) -> None:
        self.tally = Tally(self.strand)

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
        inbox = Inbox(2 * limits.RELAY_BYTES)
        listening = asyncio.create_task(self._listen(record, ends, inbox))
        try:
            while True:
                taken = await inbox.take(limits.RELAY_EVENTS, limits.RELAY_BYTES, record.upto)
                record = await self._deliver(taken, record, ends)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _ends(self) -> Ends:
        upstream, downstream = await asyncio.gather(self.above.health(), self.below.health())
        return Ends(upstream["edge"], downstream["edge"], upstream["head"])

    def _record(self, ends: Ends) -> Record:
        """Where to go on. Positions of an edge that was another one are worth nothing."""
        found = self.ledger.load(self.strand.key)
        if found is not None and found.upstream == ends.upstream:
            return found
        if found is not None:
            logger.warning("%s: the edge above is another one now; beginning at %s", self.strand, self.strand.after)
        # A cut before the first event must not make it a later now.
        record = Record(ends.upstream, ends.head if self.strand.after == "now" else self.strand.after)
        self.ledger.intend(self.strand.key, str(self.strand), record)
        return record

    async def _listen(self, record: Record, ends: Ends, inbox: Inbox) -> None:
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
                        await inbox.put(parcels.of_message(message.data))
                    elif message.event == "position":
                        await inbox.put(parcels.of_position(message.data["position"]))
                    elif message.event == "failed":
                        raise Unavailable(f"{strand.source} failed: {message.data['detail']}")
                    elif message.event == "gap":
                        await inbox.put(self._gap(message.data, ends))
            await inbox.close(Unavailable(f"{strand.source} ended"))
        except TriplewireError as error:
            await inbox.close(error)

    def _gap(self, told: dict[str, str], ends: Ends) -> Parcel:
        self.tally.gaps += 1
        logger.warning("%s: events after %s are gone; going on from %s", self.strand, told["asked"], told["earliest"])
        return parcels.of_gap(told, self.strand.source, ends.upstream, self.clock.now())

    async def _deliver(self, taken: list[Parcel], record: Record, ends: Ends) -> Record:
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
        done = Record(record.upstream, upto)
        self.ledger.settle(self.strand.key, str(self.strand), done)
        self.tally.batches += bool(full)
        self.tally.position = upto
        self.tally.turn("listening")
        return done

    def _key(self, intended: Record) -> str:
        return f"relay/{intended.upstream}/{self.strand.key}/{intended.after}-{intended.upto}"

    def _stamped(self, parcel: Parcel, ends: Ends) -> Parcel | None:
        """The parcel with the station that it comes from; None if it has been where it would go, or comes too far."""
        trail = parcel.trail.then(ends.upstream, self.strand.source.stream)
        if trail.visits(ends.downstream, self.strand.target.stream):
            self.tally.loops += 1
            return None
        if trail.long:
            self.tally.far += 1
            logger.warning("%s: %s has come through %s stations", self.strand, parcel.event, len(trail.stations))
            return None
        return replace(parcel, headers={**parcel.headers, HEADER: str(trail)})

    def _enriched(self, fit: list[Parcel]) -> list[Parcel]:
        if not self.enrichers or not fit:
            return fit
        events = enriched([each.opened() for each in fit], self.enrichers)
        return [replace(each, body=parcels.rewritten(event)) for each, event in zip(fit, events, strict=True)]

    async def _publish(self, fit: list[Parcel], key: str) -> None:
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

    async def _send(self, fit: list[Parcel], key: str) -> None:
        await self.below.publish(self.strand.target.stream, parcels.packed(fit), MEDIA_TYPE, key=key)
        self.tally.events += len(fit)
