"""Scales: how many edges there should be for the load that there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from triplewire.config import limits
from triplewire.config.status import EdgeStatus
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest

AUTO = "auto"


@dataclass(frozen=True)
class Range:
    """From how many edges to how many; where both are the same, the load does not matter."""

    least: int
    most: int

    @classmethod
    def parsed(cls, text: str, cores: int) -> Range:
        """`3` is three; `auto` is from one to one more than there are cores, `auto:8` to eight. Raises BadRequest."""
        name, _, most = text.partition(":")
        try:
            if name == AUTO:
                return cls(1, _positive(most) if most else cores + 1)
            return cls(_positive(text), _positive(text))
        except ValueError:
            raise BadRequest(f"{text!r} edges cannot be started; give a number, {AUTO}, or {AUTO}:8") from None


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


@dataclass
class Scale:
    """Asks for one edge more when they are busy, and for one less when the others could carry its load with ease, each
    only once that has been so for a while: an edge costs a second of a core to start, and those who listen to one that
    goes must come back."""

    range: Range
    clock: Clock
    _before: dict[int, EdgeStatus] = field(default_factory=dict)
    _busy_since: float | None = None
    _calm_since: float | None = None

    def wanted(self, standings: Sequence[EdgeStatus]) -> int:
        """How many there should be, of those that are there now. To be asked about once a second."""
        count = len(standings)
        load = self._load(standings)
        spread = load * count / (count - 1) if count > 1 else load
        now = self.clock.ticks()
        self._busy_since = _since(self._busy_since, now, load >= limits.EDGE_BUSY)
        self._calm_since = _since(self._calm_since, now, spread <= limits.EDGE_CALM)
        if count < self.range.most and _lasted(self._busy_since, now, limits.EDGE_BUSY_SECONDS):
            return self._changed(count + 1)
        if count > self.range.least and _lasted(self._calm_since, now, limits.EDGE_CALM_SECONDS):
            return self._changed(count - 1)
        return count

    def _changed(self, count: int) -> int:
        """What it comes to is seen anew."""
        self._busy_since = self._calm_since = None
        return count

    def _load(self, standings: Sequence[EdgeStatus]) -> float:
        """The share of their cores that edges use, on the average, or that of their seats that are taken."""
        shares = [share_of(each, self._before.get(each.pid)) for each in standings]
        self._before = {each.pid: each for each in standings}
        seats = sum(each.seats for each in standings)
        taken = sum(each.taken for each in standings) / seats if seats else 0.0
        return max(sum(shares) / len(shares) if shares else 0.0, taken)


def share_of(now: EdgeStatus, before: EdgeStatus | None) -> float:
    """Of a core, between two times that an edge told of itself; 0 where there is only one."""
    if before is None or now.at <= before.at:
        return 0.0
    return max(0.0, (now.cpu - before.cpu) / ((now.at - before.at) / 1_000_000))


def _since(before: float | None, now: float, holds: bool) -> float | None:
    return (now if before is None else before) if holds else None


def _lasted(since: float | None, now: float, seconds: float) -> bool:
    return since is not None and now - since >= seconds
