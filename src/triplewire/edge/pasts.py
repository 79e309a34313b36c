"""Pasts: what a subscription would have matched before it was made, for those that ask for it.

```
position       from ─────── past ────────▶ made ──────── present ────────▶
matched        here, when it is listened to     by the pipeline, once
read from      the lake, then the log           the outbox, then live
```

The past is a pure function of the events and of the subscription, so nothing of it is kept: whoever comes back is told
the rest again, in the same words.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa

from triplewire.config import limits
from triplewire.edge.entries import Pieces
from triplewire.edge.frames import NOTHING, Frames, gap, resume_from
from triplewire.edge.gaps import gap_after
from triplewire.edge.notifications import Solutions, Speaker, Wanted, grouped
from triplewire.edge.ports import Entries
from triplewire.edge.rooms import History
from triplewire.edge.workers import Workers
from triplewire.errors import NotFound
from triplewire.matching.chronicles import Archive, Chronicle, Page
from triplewire.matching.evaluator import Evaluator
from triplewire.matching.shapes import Shape
from triplewire.matching.solos import SINCE, solo
from triplewire.model import END, Subscription
from triplewire.registry.ports import Change, Registry
from triplewire.registry.subscriptions import SHAPE, original

_WANTED = (Wanted(SINCE, END, None),)


@dataclass(frozen=True)
class Asker:
    """A subscription as it was made, and what asks for it; of one thread at a time."""

    subscription: Subscription
    shape: Shape
    evaluator: Evaluator

    def frames(self, entries: pa.Table) -> Frames:
        """The notifications of a page of events."""
        matches = self.evaluator.match(entries)
        speaker = Speaker(Pieces(entries), Solutions(matches))
        told = [speaker.frames(self.subscription, self.shape, each) for each in grouped(matches, _WANTED)]
        return told[0] if told else NOTHING


class Pasts:
    """Reads the past of subscriptions, in threads of its own, so that the present does not wait for it."""

    def __init__(
        self,
        log: Entries,
        archive: Archive | None,
        registry: Registry,
        workers: Workers,
        limit: int = limits.PAST_EVENTS,
    ) -> None:
        self.chronicle = Chronicle(log, archive)
        self.log = log
        self.registry = registry
        self.workers = workers
        self.limit = limit
        self._turn = Lock()
        self._ready: OrderedDict[int, Asker] = OrderedDict()

    def history(self, subscription: Subscription, present: History) -> History:
        """What comes before the present, and then that; the present alone of one that does not look back."""
        return present if subscription.floor == subscription.made else PastHistory(subscription, self, present)

    def found(self, subscription: Subscription, entries: pa.Table, *, last: bool) -> Frames:
        """The notifications of a page of events. Unless it is the last, what asks is kept ready for the next."""
        if not entries.num_rows:
            return NOTHING
        with self._turn:
            asker = self._ready.pop(subscription.made, None)
        asker = asker or self._asker(subscription)
        frames = asker.frames(entries)
        if not last:
            self._keep(asker)
        return frames

    def _keep(self, asker: Asker) -> None:
        with self._turn:
            self._ready[asker.subscription.made] = asker
            while len(self._ready) > limits.PASTS_REMEMBERED:
                self._ready.popitem(last=False)

    def _asker(self, newest: Subscription) -> Asker:
        first = original(self.registry, newest)
        change = self.registry.get(SHAPE, first.shape)
        if change is None or change.value is None:
            raise NotFound(f"the shape {first.shape} of the subscription is not in the registry")
        shape = Shape.from_value(change.value)
        return Asker(first, shape, solo(first, shape, self._ontologies(first)))

    def _ontologies(self, first: Subscription) -> list[Change]:
        return [change for at in first.ontologies for change in self.registry.changes(at - 1, at)]


class PastHistory:
    """The past of one subscription, up to where it was made, and then its present."""

    def __init__(self, subscription: Subscription, pasts: Pasts, present: History) -> None:
        self._subscription = subscription
        self._pasts = pasts
        self._present = present

    @property
    def least(self) -> int:
        return self._subscription.made

    async def step(self, cursor: int) -> tuple[Frames, int]:
        if cursor >= self.least:
            return await self._present.step(cursor)
        return await self._pasts.workers.run(self._read, cursor)

    def _read(self, cursor: int) -> tuple[Frames, int]:
        page = self._pasts.chronicle.page(cursor, self.least - 1, self._pasts.limit)
        reached = self.least if page.reached >= self.least - 1 else page.reached
        found = self._pasts.found(self._subscription, page.entries, last=reached == self.least)
        return _arrived(found, reached, *self._gaps(page, reached)), reached

    def _gaps(self, page: Page, reached: int) -> tuple[bytes, bytes]:
        """What to tell before and after a page: that neither lake nor log has the events before it; that the log has
        let go of those that follow upon the past."""
        lost = self._gap(page.after) if page.begin > page.after + 1 else None
        told = lost is not None and lost > self.least
        passed = self._gap(self.least) if reached == self.least and not told else None
        return (
            b"" if lost is None else gap(page.after, lost),
            b"" if passed is None else gap(self.least, passed),
        )

    def _gap(self, after: int) -> int | None:
        return gap_after(self._pasts.log, self._pasts.registry, after)


def _arrived(found: Frames, reached: int, before: bytes, after: bytes) -> Frames:
    """Messages with what is to be told around them. A last one without words says how far this is: whoever comes back
    does not have to wait for the same again, and who is gone is noticed."""
    positions, parts = [*found.positions], [*found.parts]
    if not positions or positions[-1] < reached:
        positions.append(reached)
        parts.append(resume_from(reached))
    parts[0] = before + parts[0]
    parts[-1] += after
    return Frames(positions, parts)
