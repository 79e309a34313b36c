"""Houses: a lake and what it takes to keep it in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from triplewire.lake.maps import ZoneMaps
from triplewire.lake.ports import DataFile, Lake, Snapshot
from triplewire.lake.rewrites import Rewrite, rewritten
from triplewire.lake.zones import ZoneMap

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Progress:
    """How far a piece of work is, in quads."""

    work: str
    done: int
    of: int


class Runner(Protocol):
    """Runs a function over items, side by side where it can: a Spark job, or a loop."""

    def __call__(self, function: Callable[[T], Iterable[R]], items: Sequence[T]) -> list[R]:
        """All that the function gives. Function, items and what it gives must pickle."""


def in_turn(function: Callable[[T], Iterable[R]], items: Sequence[T]) -> list[R]:
    """The runner that needs nothing."""
    return [made for item in items for made in function(item)]


def unheard(progress: Progress) -> None:
    """For whom progress is of no interest."""


@dataclass(frozen=True)
class House:
    """One lake, kept by one keeper at a time. So many `tasks` run at once; `told` hears of progress."""

    lake: Lake
    table: Path
    maps: ZoneMaps
    run: Runner = in_turn
    tasks: int = 1
    told: Callable[[Progress], None] = unheard

    def zones(self, snapshot: Snapshot) -> ZoneMap:
        return self.maps.read(snapshot.zones)

    def rewritten(self, work: str, rewrites: Sequence[Rewrite], rows: int) -> tuple[DataFile, ...]:
        """The files that the rewrites of `rows` quads in all make, which wait for their commit. A few at a time: in
        between, others have their turn."""
        made: list[DataFile] = []
        self.told(Progress(work, 0, rows))
        for first in range(0, len(rewrites), self.tasks):
            made += self.run(partial(rewritten, self.table), rewrites[first : first + self.tasks])
            self.told(Progress(work, count(made), rows))
        return tuple(made)


def count(files: Iterable[DataFile]) -> int:
    """Quads in files."""
    return sum(each.rows for each in files)


def spread(items: Sequence[T], parts: int) -> Iterator[tuple[T, ...]]:
    """Items in turn over parts, none of which is empty."""
    for first in range(min(parts, len(items))):
        yield tuple(items[first::parts])
