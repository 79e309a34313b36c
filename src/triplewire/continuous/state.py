"""State of continuous queries: partitions, their changelogs, and the generations of state directories.

A state partition is a pure function of its inputs and batches. It keeps its inputs, less those that no longer matter,
so that a snapshot is a table of inputs, and a partition that was lost is rebuilt from the last snapshot and the
changelog since. A batch runs in rounds; a round writes one file for each partition that kept something. A batch that
is replayed overwrites the same files.

```
state/run/0, 1, windows-0 …      the first generation; beside it `distinct`, shared by all of a run
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
from typing import Final

import numpy as np
import pyarrow as pa

from triplewire.config.files import replacing
from triplewire.model.errors import Unavailable

PARTIAL_ROWS: Final = 2_000_000
"""Partial results that may wait for one more triple at one pattern of a continuous query, in one state partition: some
500 MB. A query that has more is suspended, with those that share the pattern."""


NEVER = 2**62
"""The due time if no window waits to close."""


BatchRound = tuple[int, int]
"""A batch and a round of it."""

BEFORE_ALL: BatchRound = (-1, 0)
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_SNAPSHOT = 10**12
"""The round number of a snapshot, after all rounds of its batch."""


@dataclass(frozen=True)
class BatchContext:
    """A batch: its number, the position at which it ends, and the time at which it began, in microseconds. A replayed
    batch has an equal context."""

    batch: int
    position: int
    now: int


@dataclass(frozen=True)
class StateChangelog:
    """The changelog of one state partition, in a directory of its own."""

    path: Path

    def write(self, batch_round: BatchRound, rows: pa.Table) -> None:
        """Write the rows that a partition kept in a round; they are durable on return."""
        with (
            replacing(self._file(batch_round)) as file,
            pa.ipc.new_stream(file, rows.schema, options=_OPTIONS) as stream,
        ):
            stream.write_table(rows.combine_chunks())

    def drop(self, rounds: Iterable[BatchRound]) -> None:
        """Drop the files of rounds, of which most have none."""
        for each in rounds:
            self._file(each).unlink(missing_ok=True)

    def write_snapshot(self, batch: int, rows: pa.Table) -> None:
        """Write everything that a partition has after a batch."""
        self.write((batch, _SNAPSHOT), rows)

    def read_range(self, after: BatchRound, before: BatchRound) -> ChangelogRange:
        """Return the rows that turn a partition as it was after one round into what it was before another."""
        rounds = [each for each in self._rounds() if after < each < before]
        snapshots = [each for each in rounds if each[1] == _SNAPSHOT]
        if snapshots:
            return ChangelogRange(True, self, after, tuple(each for each in rounds if each >= snapshots[-1]))
        return ChangelogRange(after == BEFORE_ALL, self, after, tuple(rounds))

    def read(self, batch_round: BatchRound) -> pa.Table:
        """Read the rows of a round. Raises Unavailable for a file that is torn."""
        try:
            with pa.OSFile(str(self._file(batch_round))) as file:
                return pa.ipc.open_stream(file).read_all()
        except (pa.ArrowInvalid, OSError) as error:
            raise Unavailable(f"{self._file(batch_round)} cannot be read: {error}") from error

    def sizes(self, least: int = 0) -> tuple[int, int]:
        """Return the bytes of the last snapshot, and of the rounds since. A smaller file counts as the least."""
        snapshot, since = 0, 0
        for each in self._rounds():
            size = max(least, self._file(each).stat().st_size)
            snapshot, since = (size, 0) if each[1] == _SNAPSHOT else (snapshot, since + size)
        return snapshot, since

    def trim(self, batch: int) -> int:
        """Drop the files before the last snapshot up to a batch; return how many there were."""
        rounds = self._rounds()
        snapshots = [each for each in rounds if each[1] == _SNAPSHOT and each[0] <= batch]
        dropped = [each for each in rounds if snapshots and each < snapshots[-1]]
        self.drop(dropped)
        return len(dropped)

    def _rounds(self) -> list[BatchRound]:
        if not self.path.exists():
            return []
        names = (name.split(".")[0].split("-") for name in os.listdir(self.path) if name.endswith(".arrow"))
        return sorted((int(batch), int(number)) for batch, number in names)

    def _file(self, batch_round: BatchRound) -> Path:
        return self.path / f"{batch_round[0]:012}-{batch_round[1]}.arrow"


@dataclass(frozen=True)
class ChangelogRange:
    """The tables of consecutive rounds. A `complete` range begins with a snapshot or with the first round: the
    partition is built from it alone."""

    complete: bool
    changelog: StateChangelog
    after: BatchRound
    rounds: tuple[BatchRound, ...]

    def __iter__(self) -> Iterator[pa.Table]:
        return map(self.changelog.read, self.rounds)

    def ends_before(self, batch: int) -> bool:
        """Whether no round of a batch has run: the range begins and ends before it."""
        return self.after[0] < batch and all(each[0] < batch for each in self.rounds)


SNAPSHOT_BATCHES = 500
"""Batches of the distinct state from one snapshot to the next."""

_DIGESTS = pa.schema([pa.field("group", pa.int64()), pa.field("digest", pa.binary(16))])

AnswerDigest = tuple[int, bytes]
"""A group, and the digest of an answer of its query."""


@dataclass
class DistinctState:
    """The answers that queries with set semantics have reported: digests of 16 bytes, with a changelog."""

    changelog: StateChangelog
    _known: dict[int, set[bytes]] = field(default_factory=dict)
    """Digests by group."""
    _batch: int = -1
    _files: int = 0
    """Files of the changelog, at most."""

    def drop_known(self, batch: int, matches: pa.Table, groups: Mapping[int, int]) -> pa.Table:
        """Return matches, in order of position, without those of `groups` that were reported before.

        `groups` has the position after which all triples of an answer must be. State of other groups is dropped. A
        batch that is replayed returns the same matches again.
        """
        which = np.isin(matches["group"].to_numpy(), list(groups)) if groups else np.zeros(0, np.bool_)
        if not which.any():
            return matches
        self._restore(batch, groups)
        keep, candidates, added = ~which, matches.filter(pa.array(which)), list[AnswerDigest]()
        columns = (candidates[name].to_pylist() for name in ("group", "value", "terms"))
        for row, group, oldest, terms in zip(which.nonzero()[0].tolist(), *columns, strict=True):
            known = self._known.setdefault(group, set())
            digest = hashlib.blake2b(repr(terms).encode(), digest_size=16).digest()
            if oldest > groups[group] and digest not in known:
                known.add(digest)
                added.append((group, digest))
                keep[row] = True
        self.changelog.write((batch, 1), _digest_table(added))
        return matches.filter(pa.array(keep))

    def groups_above(self, limit: int) -> list[int]:
        """Return the groups with more answers than a limit."""
        return [group for group, known in self._known.items() if len(known) > limit]

    def _restore(self, batch: int, groups: Collection[int]) -> None:
        """Bring the state to where it was before a batch."""
        if self._batch < 0 or self._batch >= batch:
            changes, self._known = self.changelog.read_range(BEFORE_ALL, (batch, 0)), {}
            for table in changes:
                for group, digest in zip(table["group"].to_pylist(), table["digest"].to_pylist(), strict=True):
                    self._known.setdefault(group, set()).add(digest)
            self._files = len(changes.rounds)
        self._known = {group: known for group, known in self._known.items() if group in groups}
        if self._files > SNAPSHOT_BATCHES:
            rows = _digest_table((group, each) for group in self._known for each in self._known[group])
            self.changelog.write_snapshot(batch - 1, rows)
            self.changelog.trim(batch - 1)
            self._files = 0
        self._batch, self._files = batch, self._files + 1


def _digest_table(answers: Iterable[AnswerDigest]) -> pa.Table:
    groups, digests = zip(*answers, strict=True) if (answers := list(answers)) else ((), ())
    return pa.table([pa.array(groups, pa.int64()), pa.array(digests, pa.binary(16))], schema=_DIGESTS)


_DISTINCT = "distinct"


@dataclass(frozen=True)
class StateGenerations:
    """The generations of state below a directory. Each is named by its run, the id of the streaming query, and by the
    position at which it was rebuilt, 0 for the first."""

    path: Path

    def directory(self, run: str, rebuilt_at: int) -> Path:
        return self.path / (f"{run}@{rebuilt_at}" if rebuilt_at else run)

    def distinct(self, run: str) -> Path:
        """Return the directory of the distinct state, which all generations of a run share."""
        return self.path / run / _DISTINCT

    def previous(self, run: str, rebuilt_at: int) -> Path | None:
        """Return the newest generation of a run before another one."""
        older = [(number, path) for name, number, path in self._all() if name == run and number < rebuilt_at]
        return max(older)[1] if older else None

    def oldest(self) -> int | None:
        """Return the position at which the oldest generation was rebuilt, or None if there is no state."""
        return min((number for _, number, path in self._all() if _list_partitions(path)), default=None)

    def clear_joins(self, run: str, rebuilt_at: int) -> None:
        """Drop the join partitions of a generation, which a replayed batch rebuilds. Window partitions stay: their
        changelogs were rewritten from the generation before."""
        for partition in self.directory(run, rebuilt_at).glob("[0-9]*"):
            shutil.rmtree(partition)

    def drop_others(self, run: str, rebuilt_at: int) -> None:
        """Drop all generations but one, of other runs too."""
        current, first = self.directory(run, rebuilt_at), self.directory(run, 0)
        for _, _, path in [*self._all()]:
            for dropped in [] if path == current else _list_partitions(path) if path == first else [path]:
                shutil.rmtree(dropped, ignore_errors=True)

    def clear(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _all(self) -> Iterator[tuple[str, int, Path]]:
        for path in self.path.iterdir() if self.path.exists() else ():
            run, _, position = path.name.partition("@")
            yield run, int(position or 0), path


def _list_partitions(path: Path) -> list[Path]:
    return [each for each in path.iterdir() if each.name != _DISTINCT]


def read_due(path: Path) -> int:
    """Read what the state manager wrote; never, if there is no such file."""
    try:
        return int(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return NEVER
