"""Accounts: what each shape costs, batch by batch, and which of them is too expensive to be matched with the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from triplewire.config.limits import LANE_BATCH_SECONDS, LANE_BATCHES, LANE_EVENT_SECONDS


@dataclass
class Accounts:
    """In the driver. Nothing of it is kept over a restart: whoever is expensive soon is again."""

    _known: dict[str, float] = field(default_factory=dict)
    """The seconds of each shape since the pipeline began."""
    _over: dict[str, int] = field(default_factory=dict)
    """In how many of the last batches, one after the other, a shape was too expensive."""

    def settle(self, seconds: Mapping[str, float], events: int) -> dict[str, float]:
        """A batch of so many events is done, and these are the CPU seconds of all shapes since the beginning. Gives the
        shapes that are to be moved, with the seconds that an event takes them."""
        taken = {shape: total - self._known.get(shape, 0.0) for shape, total in seconds.items()}
        self._known = dict(seconds)
        least = max(LANE_BATCH_SECONDS, events * LANE_EVENT_SECONDS)
        self._over = {shape: self._over.get(shape, 0) + 1 for shape, each in taken.items() if each >= least}
        return {shape: taken[shape] / max(1, events) for shape, count in self._over.items() if count == LANE_BATCHES}
