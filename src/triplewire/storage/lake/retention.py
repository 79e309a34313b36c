"""Retention: how long the lake keeps events, by stream, and how many bytes in all.

An event goes whole, and everything that goes does so in one commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from triplewire.model import START
from triplewire.model.errors import BadRequest
from triplewire.storage.lake.data_files import connect_duckdb, parquet_relation, quote_literal
from triplewire.storage.lake.maintenance import FileRewrite, MaintenanceContext, MaintenanceProgress, count_quads
from triplewire.storage.lake.ports import DataFile, Snapshot, TableChange

_UNITS = {"m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_AGE = re.compile(r"(?:(?P<stream>[^=\s]+)=)?(?P<count>[0-9]+)(?P<unit>[mhdw])")
_SHARE = 0.9
"""The share of the allowed size that is left when it is exceeded: otherwise every batch would drop some."""


@dataclass(frozen=True)
class LakeRetention:
    """Seconds for which events of a stream are kept, and those of streams that are not named; bytes of files that are
    kept in all, of which the oldest go. None is for good."""

    streams: Mapping[str, float] = field(default_factory=dict)
    others: float | None = None
    size: int | None = None

    @classmethod
    def parsed(cls, ages: Iterable[str], size: int = 0) -> LakeRetention:
        """Parse texts such as `30d` (all streams) and `home=12h` (one stream). Raises BadRequest."""
        found = [_parse_age(each) for each in ages]
        streams = {stream: age for stream, age in found if stream is not None}
        return cls(streams, next((age for stream, age in found if stream is None), None), size or None)

    def of(self, stream: str) -> float | None:
        """Seconds for which events of a stream are kept."""
        return self.streams.get(stream, self.others)

    @property
    def shortest(self) -> float | None:
        """The longest of all ages."""
        ages = [*self.streams.values(), *([] if self.others is None else [self.others])]
        return min(ages, default=None)


def apply_retention(context: MaintenanceContext, retention: LakeRetention, now: datetime) -> int:
    """Let go of what is too old or too much, in one commit; how many quads."""
    snapshot = context.lake.files()
    gone = [*_too_old(retention, now), *_too_much(retention, snapshot)]
    if not gone:
        return 0
    condition = " OR ".join(f"({each})" for each in gone)
    context.report(MaintenanceProgress("looking for what is too old", 0, count_quads(snapshot.files)))
    found = context.run(partial(_count_rows, context.table, condition), snapshot.files)
    affected = [(file, lost) for file, lost in found if lost]
    if affected:
        _drop(context, affected, condition)
    return sum(each.quads for _, lost in affected for each in lost)


def _parse_age(text: str) -> tuple[str | None, float]:
    found = _AGE.fullmatch(text)
    if not found or not int(found["count"]):
        raise BadRequest(f"{text!r} is no age to keep events for: say 30d, 12h or 90m, for one stream home=30d")
    return found["stream"], int(found["count"]) * _UNITS[found["unit"]]


def _too_old(retention: LakeRetention, now: datetime) -> Iterator[str]:
    for stream, age in retention.streams.items():
        yield f"stream = {quote_literal(stream)} AND {_before(now, age)}"
    if retention.others is not None:
        names = ", ".join(map(quote_literal, retention.streams))
        unnamed = f"stream NOT IN ({names}) AND " if names else ""
        yield unnamed + _before(now, retention.others)


def _before(now: datetime, age: float) -> str:
    return f"received < TIMESTAMPTZ '{(now - timedelta(seconds=age)).astimezone(UTC):%Y-%m-%d %H:%M:%S.%f+00:00}'"


def _too_much(retention: LakeRetention, snapshot: Snapshot) -> Iterator[str]:
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
class StreamLoss:
    """Rows of a file that a stream loses."""

    stream: str
    quads: int
    last: int
    """The position of the newest event among it."""


def _count_rows(table: Path, condition: str, file: DataFile) -> list[tuple[DataFile, tuple[StreamLoss, ...]]]:
    """The rows of a file that hold the condition, by streams."""
    with connect_duckdb() as duck:
        rows = f"FROM {parquet_relation([str(table / file.path)])} WHERE {condition}"
        lost = duck.execute(f"SELECT stream, count(*), max(position) {rows} GROUP BY stream").fetchall()
        return [(file, tuple(StreamLoss(*each) for each in lost))]


def _drop(
    context: MaintenanceContext, affected: Sequence[tuple[DataFile, tuple[StreamLoss, ...]]], condition: str
) -> None:
    """Remove files that lose all rows, and rewrite those that lose some. Readers of dropped positions learn from
    `dropped` that they are too late."""
    partly = [file for file, lost in affected if sum(each.quads for each in lost) < file.rows]
    rewrites = [FileRewrite((file.path,), file.rows, (file.zone or "",), kept=f"NOT ({condition})") for file in partly]
    made = context.rewrite("letting go of what is too old", rewrites, count_quads(partly))
    floors: dict[str, int] = {}
    for each in (each for _, lost in affected for each in lost):
        floors[each.stream] = max(each.last, floors.get(each.stream, START))
    context.lake.replace(TableChange(tuple(file for file, _ in affected), made, lost=True, floors=floors))
