"""Retentions: how long the lake keeps what was published, and how much of it.

An event goes whole: what goes is said by what all of its quads have in common, and goes in one commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from triplewire.errors import BadRequest
from triplewire.lake.houses import House, Progress, count
from triplewire.lake.ports import Change, DataFile, Snapshot
from triplewire.lake.relations import engine, parquet, quoted
from triplewire.lake.rewrites import Rewrite
from triplewire.model import START

_UNITS = {"m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_AGE = re.compile(r"(?:(?P<stream>[^=\s]+)=)?(?P<count>[0-9]+)(?P<unit>[mhdw])")
_SHARE = 0.9
"""Of the size that is allowed, what is left when it is passed: else each batch would take some away."""


@dataclass(frozen=True)
class Retention:
    """Seconds for which events of a stream are kept, and those of streams that are not named; bytes of files that are
    kept in all, of which the oldest go. None is for good."""

    streams: Mapping[str, float] = field(default_factory=dict)
    others: float | None = None
    size: int | None = None

    @classmethod
    def parsed(cls, ages: Iterable[str], size: int = 0) -> Retention:
        """Of texts such as `30d`, for all streams, and `home=12h`, for one. Raises BadRequest."""
        found = [_parsed(each) for each in ages]
        streams = {stream: age for stream, age in found if stream is not None}
        return cls(streams, next((age for stream, age in found if stream is None), None), size or None)

    def of(self, stream: str) -> float | None:
        """Seconds for which events of a stream are kept."""
        return self.streams.get(stream, self.others)

    @property
    def shortest(self) -> float | None:
        """Of the ages that there are."""
        ages = [*self.streams.values(), *([] if self.others is None else [self.others])]
        return min(ages, default=None)


def retain(house: House, retention: Retention, now: datetime) -> int:
    """Let go of what is too old or too much, in one commit; how many quads."""
    snapshot = house.lake.files()
    gone = [*_old(retention, now), *_much(retention, snapshot)]
    if not gone:
        return 0
    condition = " OR ".join(f"({each})" for each in gone)
    house.told(Progress("looking for what is too old", 0, count(snapshot.files)))
    found = house.run(partial(_counted, house.table, condition), snapshot.files)
    affected = [(file, lost) for file, lost in found if lost]
    if affected:
        _drop(house, affected, condition)
    return sum(each.quads for _, lost in affected for each in lost)


def _parsed(text: str) -> tuple[str | None, float]:
    found = _AGE.fullmatch(text)
    if not found or not int(found["count"]):
        raise BadRequest(f"{text!r} is no age to keep events for: say 30d, 12h or 90m, for one stream home=30d")
    return found["stream"], int(found["count"]) * _UNITS[found["unit"]]


def _old(retention: Retention, now: datetime) -> Iterator[str]:
    for stream, age in retention.streams.items():
        yield f"stream = {quoted(stream)} AND {_before(now, age)}"
    if retention.others is not None:
        names = ", ".join(map(quoted, retention.streams))
        unnamed = f"stream NOT IN ({names}) AND " if names else ""
        yield unnamed + _before(now, retention.others)


def _before(now: datetime, age: float) -> str:
    return f"received < TIMESTAMPTZ '{(now - timedelta(seconds=age)).astimezone(UTC):%Y-%m-%d %H:%M:%S.%f+00:00}'"


def _much(retention: Retention, snapshot: Snapshot) -> Iterator[str]:
    """Up to the position that brings the size under its limit."""
    if retention.size is None or snapshot.size <= retention.size:
        return
    over = snapshot.size - int(retention.size * _SHARE)
    for each in sorted(snapshot.files, key=lambda file: file.last):
        over -= each.size
        if over <= 0:
            yield f"position <= {each.last}"
            return


@dataclass(frozen=True)
class Loss:
    """What a stream loses of a file."""

    stream: str
    quads: int
    last: int
    """The position of the newest event among it."""


def _counted(table: Path, condition: str, file: DataFile) -> list[tuple[DataFile, tuple[Loss, ...]]]:
    """The rows of a file that hold the condition, by streams."""
    with engine() as duck:
        rows = f"FROM {parquet([str(table / file.path)])} WHERE {condition}"
        lost = duck.execute(f"SELECT stream, count(*), max(position) {rows} GROUP BY stream").fetchall()
        return [(file, tuple(Loss(*each) for each in lost))]


def _drop(house: House, affected: Sequence[tuple[DataFile, tuple[Loss, ...]]], condition: str) -> None:
    """Files that lose all rows go, those that lose some become others. Who comes too late is told so by streams."""
    partly = [file for file, lost in affected if sum(each.quads for each in lost) < file.rows]
    rewrites = [Rewrite((file.path,), file.rows, (file.zone or "",), kept=f"NOT ({condition})") for file in partly]
    made = house.rewritten("letting go of what is too old", rewrites, count(partly))
    floors: dict[str, int] = {}
    for each in (each for _, lost in affected for each in lost):
        floors[each.stream] = max(each.last, floors.get(each.stream, START))
    house.lake.replace(Change(tuple(file for file, _ in affected), made, lost=True, floors=floors))
