"""Prunings: a compiled query with each of its scans over those files alone that can hold a row for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from triplewire.lake.ports import DataFile, Snapshot
from triplewire.query.narrowings import narrowed
from triplewire.query.ranges import Ranges
from triplewire.sparql import Compiled, Dialect

Source: TypeAlias = Callable[[str, str, tuple[int, ...]], str]
"""What to write in FROM for a relation under an alias over the files of these numbers."""

# Texts are passed over: what somebody asks for may have the name of a relation in it.
_SCANS: Mapping[Dialect, re.Pattern[str]] = {
    "duckdb": re.compile(r"'(?:[^']|'')*'|\b(quads|events)\b(?: AS (\w+))?"),
    "spark": re.compile(r"'(?:[^'\\]|\\.)*'|\b(quads|events)\b(?: AS (\w+))?", re.DOTALL),
}


@dataclass(frozen=True)
class Scanned:
    """The files that the scans of a query read, by number, under the aliases of these."""

    snapshot: Snapshot
    scans: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def files(self) -> list[DataFile]:
        """Each once, however many scans read it."""
        numbers = sorted({number for each in self.scans.values() for number in each})
        return [self.snapshot.files[number] for number in numbers]

    @property
    def zones_scanned(self) -> Iterator[str | None]:
        """The zone of each file, as often as it is scanned."""
        return (self.snapshot.files[number].zone for each in self.scans.values() for number in each)

    @property
    def zones(self) -> frozenset[str]:
        """Those that the files lie in, but for fresh ones."""
        return zones(self.files)


def zones(files: Iterable[DataFile]) -> frozenset[str]:
    return frozenset(each.zone for each in files if each.zone is not None)


@dataclass
class Pruning:
    """Rewrites one query. `source` is asked once for each scan."""

    snapshot: Snapshot
    ranges: Ranges
    dialect: Dialect
    source: Source
    _scans: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def pruned(self, compiled: Compiled) -> tuple[Compiled, Scanned]:
        """The same query, and what it reads."""
        chosen = narrowed(compiled.readings, self.ranges)
        steps = tuple(
            replace(step, sql=self._written(step.sql, chosen), following=self._written(step.following, chosen))
            for step in compiled.steps
        )
        made = replace(compiled, sql=self._written(compiled.sql, chosen), steps=steps)
        return made, Scanned(self.snapshot, self._scans)

    def _written(self, sql: str, chosen: Mapping[str, tuple[int, ...]]) -> str:
        def written(found: re.Match[str]) -> str:
            relation, alias = found[1], found[2]
            if relation is None:
                return found[0]
            numbers = chosen[alias] if alias in chosen else tuple(range(len(self.snapshot.files)))
            self._scans[alias or relation] = numbers
            return self.source(relation, alias or relation, numbers)

        return _SCANS[self.dialect].sub(written, sql)


def scanned_by(compiled: Compiled, snapshot: Snapshot, ranges: Ranges, dialect: Dialect) -> Scanned:
    """What a query would read."""
    return Pruning(snapshot, ranges, dialect, lambda relation, alias, numbers: relation).pruned(compiled)[1]
