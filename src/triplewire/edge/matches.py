"""The feed of matches: what the pipeline found, to those who listen to subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from triplewire.config import limits
from triplewire.edge import frames as sse
from triplewire.edge.entries import Pieces
from triplewire.edge.frames import NOTHING, Frames
from triplewire.edge.notifications import Group, Solutions, Speaker, grouped
from triplewire.edge.ports import Entries
from triplewire.edge.rooms import Room
from triplewire.edge.subscriptions import Subscriptions
from triplewire.edge.workers import Workers
from triplewire.log.ports import Chunk, Outbox
from triplewire.model import Subscription
from triplewire.registry.ports import Registry
from triplewire.telemetry.metrics import Metrics

_BREATH = 250
"""Notifications between two turns of the event loop: at most 40 µs each, so that nobody waits longer than 10 ms."""


class Matches:
    """Brings new chunks into a room whose keys are the positions at which subscriptions were made."""

    def __init__(
        self,
        outbox: Outbox,
        log: Entries,
        registry: Registry,
        workers: Workers,
        metrics: Metrics,
        limit: int = limits.HISTORY_EVENTS,
    ) -> None:
        self.room: Room[int] = Room(outbox.head())
        self.subscriptions = Subscriptions(registry, log, self.room, workers)
        self._outbox = outbox
        self._log = log
        self._workers = workers
        self._delivered = metrics.delivered.labels("notification")
        self._limit = limit

    async def step(self) -> None:
        """Hand out every new chunk, then see off those whose subscription has ended. Nobody there: nothing is read."""
        await self.subscriptions.refresh()
        head = await self._workers.run(self._outbox.head)
        while any(True for _ in self.room) and self.room.place < head:
            await self._hand_out(await self._workers.run(self._outbox.read, self.room.place, 1), head)
        self.room.place = max(self.room.place, head)
        await self._see_off()

    def history(self, subscription: Subscription) -> MatchHistory:
        return MatchHistory(subscription, self, self._outbox, self._log, self._workers, self._limit)

    async def _hand_out(self, chunks: Sequence[Chunk], head: int) -> None:
        # Whoever enters from here on has this chunk from history.
        self.room.place = chunks[0].upto if chunks else head
        groups = [group for chunk in chunks for group in grouped(chunk.matches, self.subscriptions.wanted(self.room))]
        if groups:
            speaker = await self._workers.run(_speaker, self._log, chunks[0].matches, groups)
            await self._push(speaker, groups)

    async def _push(self, speaker: Speaker, groups: Sequence[Group]) -> None:
        written = spoken = 0
        for page in (page for group in groups for page in group.pages(self._limit)):
            subscription = self.subscriptions.at(page.since)
            if subscription is None:
                continue
            frames = speaker.frames(subscription, self.subscriptions.shape(subscription), page)
            written += self.room.push(page.since, frames)
            spoken += len(page.positions)
            if spoken >= _BREATH:
                # The loop serves publishers, and writes out what was handed to connections, in between.
                spoken = 0
                await asyncio.sleep(0)
        self._delivered.inc(written)

    async def _see_off(self) -> None:
        for subscription in self.subscriptions.ended():
            if self.room.at(subscription.since) and await self._settled(subscription.until):
                self.room.finish(subscription.since, sse.end(subscription.id))

    async def _settled(self, until: int) -> bool:
        """Whether every event before a position was matched. A registry change alone makes no batch."""
        place = self.room.place
        return place >= until or not (await self._workers.run(self._log.read, place, until, 1)).num_rows


class MatchHistory:
    """What the outbox still holds for one subscription."""

    def __init__(
        self, subscription: Subscription, feed: Matches, outbox: Outbox, log: Entries, workers: Workers, limit: int
    ) -> None:
        self._subscription = subscription
        self._shape = feed.subscriptions.shape(subscription)
        self._wanted = feed.subscriptions.listened(subscription)
        self._room = feed.room
        self._outbox = outbox
        self._log = log
        self._workers = workers
        self._limit = limit

    async def step(self, cursor: int) -> tuple[Frames, int]:
        return await self._workers.run(self._read, cursor, self._room.place)

    def _read(self, cursor: int, place: int) -> tuple[Frames, int]:
        for chunk in self._outbox.read(cursor, 1):
            for group in grouped(chunk.matches, (self._wanted,)):
                return self._page(chunk, group.page(cursor, self._limit))
            return NOTHING, chunk.upto
        return NOTHING, place

    def _page(self, chunk: Chunk, page: Group) -> tuple[Frames, int]:
        if not page.positions:
            return NOTHING, chunk.upto
        speaker = _speaker(self._log, chunk.matches, [page])
        frames = speaker.frames(self._subscription, self._shape, page)
        return frames, page.positions[-1] if len(page.positions) == self._limit else chunk.upto


def _speaker(log: Entries, matches: pa.Table, groups: Sequence[Group]) -> Speaker:
    positions = np.unique(np.concatenate([group.positions for group in groups]))
    return Speaker(Pieces(log.entries(positions.tolist())), Solutions(matches))
