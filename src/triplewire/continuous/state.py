"""State of continuous queries: partitions, their changelogs, and the generations of state directories.

A state partition is a pure function of its inputs and batches. It keeps its inputs, less those that no longer matter,
so that a snapshot is a table of inputs, and a partition that was lost is rebuilt from the last snapshot and the
changelog since. A batch runs in rounds; a round writes one file for each partition that kept something. A batch that
is replayed overwrites the same files.

```
state/run/0, 1, windows-0 …      the first generation; beside it `told`, the distinct state, shared by all of a run
state/run@4711/0, 1 …            rebuilt at position 4711, and so on
```

Erased data is in no generation that was built after it had left log and lake. Older generations are dropped once the
answers of the batch that built the new one are written.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from triplewire.config.files import replacing
from triplewire.model.errors import Unavailable

# A batch is done in rounds, and a round writes one file for each place that kept something in it. A batch that is done
# again writes the same files over. Now and then all that a place still has is written down at once, so that there is
# little to read when one is made again.

BatchRound = tuple[int, int]
"""A batch and a round of it."""

BEFORE_ALL: BatchRound = (-1, 0)
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_SNAPSHOT = 10**12
"""In the place of a round: all that there was after a batch."""


@dataclass(frozen=True)
class StateChangelog:
    """Of one place, in a directory of its own."""

    path: Path

    def write(self, moment: BatchRound, kept: pa.Table) -> None:
        """What a place kept in a round; returns only after it is durable."""
        self._put(moment, kept)

    def settle(self, batch: int, kept: pa.Table) -> None:
        """All that a place has after a batch."""
        self._put((batch, _SNAPSHOT), kept)

    def since(self, after: BatchRound, before: BatchRound) -> ChangelogRange:
        """What makes a place, as it was after a round, what it was before another one."""
        moments = [each for each in self._moments() if after < each < before]
        wholes = [each for each in moments if each[1] == _SNAPSHOT]
        if wholes:
            return ChangelogRange(True, self, tuple(each for each in moments if each >= wholes[-1]))
        return ChangelogRange(after == BEFORE_ALL, self, tuple(moments))

    def get(self, moment: BatchRound) -> pa.Table:
        """What was written then. Raises Unavailable for a file that is torn."""
        try:
            with pa.OSFile(str(self._file(moment))) as file:
                return pa.ipc.open_stream(file).read_all()
        except (pa.ArrowInvalid, OSError) as error:
            raise Unavailable(f"{self._file(moment)} cannot be read: {error}") from error

    def size(self, after: int) -> tuple[int, int]:
        """How many bytes were written last as a whole, before a batch, and how many have come since."""
        whole, since = 0, 0
        for moment in self._moments():
            size = self._file(moment).stat().st_size
            whole, since = (size, 0) if moment[1] == _SNAPSHOT else (whole, since + size)
        return whole, since

    def trim(self, batch: int) -> int:
        """Drop what nobody needs who makes a place as it was after a batch or later; how many files went."""
        moments = self._moments()
        wholes = [each for each in moments if each[1] == _SNAPSHOT and each[0] <= batch]
        gone = [each for each in moments if wholes and each < wholes[-1]]
        for each in gone:
            self._file(each).unlink(missing_ok=True)
        return len(gone)

    def _moments(self) -> list[BatchRound]:
        if not self.path.exists():
            return []
        names = (name.split(".")[0].split("-") for name in os.listdir(self.path) if name.endswith(".arrow"))
        return sorted((int(batch), int(round_)) for batch, round_ in names)

    def _file(self, moment: BatchRound) -> Path:
        return self.path / f"{moment[0]:012}-{moment[1]}.arrow"

    def _put(self, moment: BatchRound, table: pa.Table) -> None:
        with replacing(self._file(moment)) as file, pa.ipc.new_stream(file, table.schema, options=_OPTIONS) as stream:
            stream.write_table(table)


@dataclass(frozen=True)
class ChangelogRange:
    """What was written between two rounds. A place begins `anew` where it all was written down as a whole since."""

    anew: bool
    ledger: StateChangelog
    moments: tuple[BatchRound, ...]

    def __iter__(self) -> Iterator[pa.Table]:
        return map(self.ledger.get, self.moments)


# Places: where state is, in one of many workers; it is nothing but what came in.
#
# A place takes what a batch sends it and gives what follows. All that it holds is what it was given, less what no
# longer matters, so that a snapshot of it is a table of its inputs, and one that was lost is made again from the last
# snapshot and what came since.


@dataclass(frozen=True)
class BatchContext:
    """A batch: its number, the position at which it ends, and the time at which it was begun, in microseconds. A batch
    that is replayed is the same turn."""

    batch: int
    upto: int
    now: int


class StatePartition(Protocol):
    """Not safe for threads. A pure function of its inputs and turns: equal ones give equal outputs."""

    def take(self, inputs: pa.Table, turn: BatchContext) -> pa.Table:
        """What follows from what a batch brings. Turns come in order."""

    def restore(self, inputs: pa.Table, turn: BatchContext) -> None:
        """Take in what was kept, or what came in a batch, without telling what follows."""

    def kept(self) -> pa.Table:
        """What still matters of all that came in: given to a new place by `restore`, it makes an equal one. Small
        things beside it stand in the metadata of its schema."""


# Memories: what was told already to those who want everything once.

SNAPSHOT_BATCHES = 500
"""Batches that are written down one by one, before all of it is at once."""

_DIGESTS = pa.schema([pa.field("group", pa.int64()), pa.field("digest", pa.binary(16))])

AnswerDigest = tuple[int, bytes]
"""A group, and the digest of an answer of its query."""


@dataclass
class DistinctState:
    """Answers of queries with set semantics, as digests of 16 bytes, written down batch by batch."""

    ledger: StateChangelog
    _known: dict[int, set[bytes]] = field(default_factory=dict)
    """By group."""
    _batch: int = -1
    _written: int = 0
    """Files of the ledger, at most."""

    def fresh(self, batch: int, matches: pa.Table, groups: Mapping[int, int]) -> pa.Table:
        """Matches in order of position, without those of these groups that were told before; others are forgotten. Of a
        group counts what has all its pieces after a position. A batch that is done again forgets what it told the first
        time."""
        which = np.isin(matches["group"].to_numpy(), list(groups)) if groups else np.zeros(0, np.bool_)
        if not which.any():
            return matches
        self._recall(batch, groups)
        keep, asked, told = ~which, matches.filter(pa.array(which)), list[AnswerDigest]()
        columns = (asked[name].to_pylist() for name in ("group", "value", "terms"))
        for row, group, oldest, terms in zip(which.nonzero()[0].tolist(), *columns, strict=True):
            known, digest = self._known.setdefault(group, set()), _digest(terms)
            if oldest > groups[group] and digest not in known:
                known.add(digest)
                told.append((group, digest))
                keep[row] = True
        self.ledger.write((batch, 1), _digest_table(told))
        return matches.filter(pa.array(keep))

    def crowded(self, most: int) -> list[int]:
        """Groups of which more is remembered."""
        return [group for group, known in self._known.items() if len(known) > most]

    def _recall(self, batch: int, groups: Collection[int]) -> None:
        """All that was told before a batch."""
        if self._batch < 0 or self._batch >= batch:
            past, self._known = self.ledger.since(BEFORE_ALL, (batch, 0)), {}
            for table in past:
                for group, digest in zip(table["group"].to_pylist(), table["digest"].to_pylist(), strict=True):
                    self._known.setdefault(group, set()).add(digest)
            self._written = len(past.moments)
        self._known = {group: known for group, known in self._known.items() if group in groups}
        if self._written > SNAPSHOT_BATCHES:
            self.ledger.settle(
                batch - 1, _digest_table((group, each) for group in self._known for each in self._known[group])
            )
            self.ledger.trim(batch - 1)
            self._written = 0
        self._batch, self._written = batch, self._written + 1


def _digest_table(told: Iterable[AnswerDigest]) -> pa.Table:
    groups, digests = zip(*told, strict=True) if (told := list(told)) else ((), ())
    return pa.table([pa.array(groups, pa.int64()), pa.array(digests, pa.binary(16))], schema=_DIGESTS)


def _digest(terms: list[str | None]) -> bytes:
    return hashlib.blake2b(repr(terms).encode(), digest_size=16).digest()


# Generations of what continuous queries keep: directories, of which there is one more each time that it is made anew.
#
# ```
# state/run/0, 1, windows-0 …      the first; beside it `told`, which all of a run have
# state/run@4711/0, 1 …            made anew at the position 4711, and so on
# ```
#
# What is erased is in no generation that was made after it had gone from log and lake. The older ones are dropped when
# the answers of the batch are written in which the new one was made. Should that batch be done again, stations are
# made anew once more; what windows were given was written down and stays.

_DISTINCT_FOLDER = "told"
"""Which answers were told of those that are told once: hashes."""


@dataclass(frozen=True)
class StateGenerations:
    """All that lie in a directory."""

    path: Path

    def of(self, run: str, made: int) -> Path:
        """The one of a run that was made anew at a position; 0 for the first."""
        return self.path / (f"{run}@{made}" if made else run)

    def told(self, run: str) -> Path:
        return self.path / run / _DISTINCT_FOLDER

    def newest_before(self, run: str, made: int) -> Path | None:
        """The one that came before another, if there is any."""
        found = [(number, path) for name, number, path in self._all() if name == run and number < made]
        return max(found)[1] if found else None

    def oldest(self) -> int | None:
        """Where the oldest that is there was made; None where there is none."""
        return min((number for _, number, path in self._all() if _list_parts(path)), default=None)

    def begin(self, run: str, made: int) -> None:
        """Stations from nothing: what is there of them was made by a batch that is done again."""
        for number in self.of(run, made).glob("[0-9]*"):
            shutil.rmtree(number)

    def drop_others(self, run: str, made: int) -> None:
        """All but one, also those of other runs, to which nobody goes back."""
        kept, first = self.of(run, made), self.of(run, 0)
        for _, _, path in [*self._all()]:
            for gone in [] if path == kept else _list_parts(path) if path == first else [path]:
                shutil.rmtree(gone, ignore_errors=True)

    def clear(self) -> None:
        """All of them."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _all(self) -> Iterator[tuple[str, int, Path]]:
        for path in self.path.iterdir() if self.path.exists() else ():
            run, _, made = path.name.partition("@")
            yield run, int(made or 0), path


def _list_parts(path: Path) -> list[Path]:
    """What a generation has for itself."""
    return [each for each in path.iterdir() if each.name != _DISTINCT_FOLDER]
