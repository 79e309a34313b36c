"""The index store: adds programs, groups and members to the index files, under the lock of the machine's index
directory.

```
<directory>/<sources>-<boot>/lock      its holder writes
<directory>/<sources>-<boot>/7/        the files of the seventh generation
```

The index is derived from the registry, so nothing of it has to be durable: files of other sources, or of before the
last boot, are removed, and half-written ones give way to a new generation. The directory may be deleted at any time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import psutil

import triplewire
from triplewire.kernels.arrays import Int8, Int32, Int64, Records
from triplewire.kernels.words import WIDTH, memory_fence
from triplewire.matching.index.arrays import CONSTANT, GROUP, HINT, PATTERN_SLOT, PROGRAM, STEP
from triplewire.matching.index.build import add_members, describe_constants, link_groups, rehash, remove_members
from triplewire.matching.index.columns import (
    DECIDED,
    ENDED,
    UNDECIDED,
    Allocate,
    StaleIndex,
    allocate,
    move_members,
    move_names,
    number_names,
    update_members,
)
from triplewire.matching.index.files import TABLES, IndexFiles
from triplewire.matching.index.memberships import Membership
from triplewire.matching.index.programs import IndexProgram
from triplewire.model.errors import StorageFull
from triplewire.sparql.algebra import Family


@dataclass(frozen=True)
class ProgramAddition:
    """A program to be added. Matches of a program that `guards` are candidates for the residual matcher."""

    program: IndexProgram
    shape: int
    """The position at which the shape was registered."""
    guards: bool

    @property
    def widest(self) -> int:
        """The most keys that a group of the program may have."""
        return max([3, *(2 + len(each.parameters) for each in self.program.hints)])


class IndexStore:
    """The writer of the index files. It appends after room was reserved."""

    def __init__(self, files: IndexFiles) -> None:
        self.files = files
        columns, tables = files.columns, files.tables
        self._programs, self._slots, self._steps = columns["programs"], columns["slots"], columns["steps"]
        self._hints, self._groups, self._names = columns["hints"], columns["groups"], columns["names"]
        self._constants, self._pool, self._postings = columns["constants"], columns["pool"], columns["postings"]
        self._ended, self._journal = columns["ended"], columns["journal"]
        self._numbers, self._members = tables["numbers"], tables["members"]

    def reserve(self, additions: Sequence[ProgramAddition], memberships: Sequence[Membership], postings: int) -> None:
        """Reserve room for programs and groups, assuming that all are new. Raises StorageFull and leaves all as it
        was."""
        programs = [each.program for each in additions]
        texts = [text for each in programs for text in each.fixed]
        texts += [text for each in memberships for text in each.constants]
        self._programs.reserve(len(programs))
        self._slots.reserve(3 * sum(len(each.rows) for each in programs))
        self._steps.reserve(sum(len(each.steps) for each in programs))
        self._hints.reserve(sum(len(hint.parameters) for each in programs for hint in each.hints))
        self._groups.reserve(len(memberships))
        self._names.reserve(len(memberships))
        self._constants.reserve(len(texts))
        # Texts are read word by word, the last word, too.
        self._pool.reserve(len("".join(texts).encode()) + WIDTH)
        self._postings.reserve(postings)
        self._widen_keys(self._postings.size + postings)
        self._widen_numbers(self._groups.size + len(memberships))

    def reserve_members(self, count: int) -> None:
        """Reserve room for `count` changes of subscriptions. Raises StorageFull and leaves all as it was."""
        self._ended.reserve(count)
        self._journal.reserve(count)
        members, header = self._members.data, self.files.header
        if 3 * (int(header["taken"]) + count) > 2 * len(members):
            # Members that are gone are not copied, so the new table may be no longer than the old.
            living = int(np.isin(members["state"], (DECIDED, UNDECIDED)).sum())
            made = self._members.begin(_next_power_of_two(2 * (living + count)))
            taken = move_members(members, made)
            self._change("members", made)
            header["taken"] = taken

    def add_program(self, addition: ProgramAddition) -> int:
        """Add a program and return its number."""
        program = addition.program
        limit = program.threshold
        made = np.zeros(1, PROGRAM)
        made["shape"], made["guards"], made["widest"] = addition.shape, addition.guards, addition.widest
        made["first_fixed"] = self._add_constants(program.fixed)
        made["first_row"], made["rows"] = self._slots.size // 3, len(program.rows)
        made["first_step"], made["steps"] = self._steps.size, len(program.steps)
        made["variables"], made["solutions"] = program.variables, program.solutions
        made["threshold"] = -1 if limit is None else limit.variable
        made["direction"] = 0 if limit is None else limit.op
        made["timely"] = limit is not None and limit.family is Family.DATETIME
        slots = [
            (each.number, each.slot, row.header, row.again(at))
            for row in program.rows
            for at, each in enumerate(row.slots)
        ]
        self._slots.extend(np.array(slots, PATTERN_SLOT))
        steps = [(each.variable, each.constant.number, each.op, each.constant.slot) for each in program.steps]
        self._steps.extend(np.array(steps, STEP))
        made["first_hint"] = self._hints.size
        hints = [
            (number, choice, hint.row, hint.way)
            for choice, hint in enumerate(program.hints)
            for number in hint.parameters
        ]
        made["hints"] = len(hints)
        self._hints.extend(np.array(hints, HINT))
        self._programs.extend(made)
        return self._programs.size - 1

    def join(self, program: int, memberships: Sequence[Membership]) -> Int32:
        """Add subscriptions of one program to their groups, and return the number of the group of each."""
        names = np.fromiter((each.group for each in memberships), np.int64, len(memberships))
        bounds = np.fromiter((each.threshold for each in memberships), np.float64, len(memberships))
        numbers, fresh = np.zeros(len(names), np.int32), np.zeros(len(names), np.int8)
        number_names(self._numbers.data, names, self._groups.size, numbers, fresh)
        indexes = np.flatnonzero(fresh)
        self._names.extend(names[indexes])
        self._add_groups(program, [memberships[place].constants for place in indexes.tolist()], bounds[indexes])
        later = np.flatnonzero(fresh == 0)
        add_members(self._groups.data, numbers[later], bounds[later], memberships[0].above)
        return numbers

    def enroll(self, calls: Records) -> Int8:
        """Apply changes of subscriptions, and return the former state of each."""
        ended, before = np.zeros(len(calls), ENDED), np.zeros(len(calls), np.int8)
        ends, taken = update_members(self._members.data, calls, ended, before)
        self._ended.extend(ended[:ends])
        self.files.header["taken"] += taken
        return before

    def note(self, entries: Int64) -> None:
        self._journal.extend(entries)

    def know(self, position: int, last: int, fingerprint: int) -> None:
        """Publish that the index is complete up to a position; the last change was at `last`."""
        header = self.files.header
        header["last"], header["fingerprint"] = last, fingerprint
        self.files.publish()
        header["version"] = position

    def forget(self, before: int) -> None:
        """Drop subscriptions that ended before a position."""
        header = self.files.header
        forgotten = int(header["forgotten"])
        gone = int(np.searchsorted(self._ended.data["until"][forgotten : self._ended.size], before))
        if gone:
            with self.files.writing():
                dropped = self._ended.data[forgotten : forgotten + gone]
                header["horizon"] = dropped["until"][-1]
                remove_members(self._groups.data, dropped)
                header["forgotten"] = forgotten + gone

    def members_of(self, groups: Int32) -> tuple[Int64, Int32]:
        """The subscriptions of groups that are not forgotten: the positions at which they were made, and the group
        of each."""
        members, ended = self._members.data, self._ended.data[int(self.files.header["forgotten"]) : self._ended.size]
        living = members[(members["state"] == DECIDED) & np.isin(members["group"], groups)]
        dying = ended[np.isin(ended["group"], groups)]
        since = np.concatenate((living["since"], dying["since"]))
        return since, np.concatenate((living["group"], dying["group"]))

    def _add_groups(self, program: int, constants: Sequence[Sequence[str]], bounds: np.ndarray) -> None:
        first = self._groups.size
        width = np.fromiter(map(len, constants), np.int64, len(constants))
        made = np.zeros(len(constants), GROUP)
        made["program"] = program
        start = self._add_constants([text for each in constants for text in each])
        made["first_constant"] = start + np.cumsum(width) - width
        made["bound"] = bounds
        made["members"] = 1
        self._groups.extend(made)
        self._postings.size = link_groups(self.files.arrays(), first, self._groups.size, self._postings.size)

    def _add_constants(self, texts: Sequence[str]) -> int:
        """Add texts to the pool, and return the number of the first."""
        joined = "".join(texts)
        terms: Sequence[str | bytes] = texts if joined.isascii() else [text.encode() for text in texts]
        made = np.zeros(len(texts), CONSTANT)
        length = np.fromiter(map(len, terms), np.int64, len(texts))
        made["length"] = length
        made["start"] = self._pool.size + np.cumsum(length) - length
        first = self._constants.size
        self._pool.extend(np.frombuffer(joined.encode(), np.uint8))
        self._constants.extend(made)
        describe_constants(self._pool.data, self._constants.data, first, self._constants.size)
        return first

    def _widen_keys(self, most: int) -> None:
        """Keep the key table at most half full."""
        old = self.files.tables["keys"].data
        if 2 * most > len(old):
            keys, bloom = self.files.begin_keys(_next_power_of_two(2 * most))
            rehash(self.files.arrays()._replace(keys=keys, bloom=bloom), old)
            self._change("bloom", bloom)
            self._change("keys", keys)

    def _widen_numbers(self, most: int) -> None:
        if 3 * most > 2 * len(self._numbers.data):
            made = self._numbers.begin(_next_power_of_two(2 * most))
            move_names(self._numbers.data, made)
            self._change("numbers", made)

    def _change(self, name: str, made: Records) -> None:
        """Switch to the new file of a table: other processes are told before the old file goes."""
        table = self.files.tables[name]
        memory_fence()
        self.files.header["tables"][[*TABLES].index(name)] = table.number + 1
        table.change(made)


def _next_power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


_BOOT = Path("/proc/sys/kernel/random/boot_id")


class IndexGenerations:
    """One worker's access to the index of its machine. Not thread-safe."""

    def __init__(self, directory: Path, allocate: Allocate = allocate) -> None:
        """Raises StorageFull."""
        self._root = directory / source_fingerprint()
        self._allocate = allocate
        self._lock: int | None = None
        self._store: IndexStore | None = None
        _remove_stale(directory, self._root.name)
        with self.locked():
            pass

    def __del__(self) -> None:
        if getattr(self, "_lock", None) is not None:
            os.close(self._lock)  # type: ignore[arg-type]

    @property
    def files(self) -> IndexFiles:
        """The files of the generation that this worker has open."""
        assert self._store is not None, "a generation is opened at construction"
        return self._store.files

    @contextmanager
    def locked(self) -> Iterator[IndexStore]:
        """Hold the lock, with the store of the newest generation open. Raises StorageFull."""
        lock = self._wait_for_lock()
        try:
            yield self._follow()
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)

    def renew(self) -> IndexStore:
        """Start an empty generation. Readers of the old one keep their mappings. The caller holds the lock."""
        old = self._newest()
        directory = self._root / str(old + 1)
        try:
            self._store = IndexStore(IndexFiles.fresh(directory, self._allocate))
        except (OSError, StorageFull) as error:
            shutil.rmtree(directory, ignore_errors=True)
            raise StorageFull(f"there is no room on the disk for the index of subscriptions: {error}") from error
        for each in range(1, old + 1):
            shutil.rmtree(self._root / str(each), ignore_errors=True)
        return self._store

    def _wait_for_lock(self) -> int:
        """Wait for the lock, of the directory as it is now, if it was removed meanwhile."""
        path = self._root / "lock"
        while True:
            if self._lock is None:
                self._root.mkdir(parents=True, exist_ok=True)
                self._lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.fstat(self._lock).st_ino == path.stat().st_ino:
                    return self._lock
            os.close(self._lock)
            self._lock = None

    def _follow(self) -> IndexStore:
        newest = self._newest()
        try:
            if self._store is None or not self._is_open(newest):
                self._store = IndexStore(IndexFiles(self._root / str(newest), self._allocate))
            elif self.files.header["writing"]:
                raise StaleIndex("a writer died while writing")
            self.files.load()
        except StaleIndex:
            return self.renew()
        return self._store

    def _is_open(self, number: int) -> bool:
        path = self._root / str(number) / "header"
        return path.exists() and path.stat().st_ino == self.files.inode

    def _newest(self) -> int:
        return max((int(each.name) for each in self._root.iterdir() if each.name.isdigit()), default=0)


@cache
def source_fingerprint() -> str:
    """A name for the sources of the package and the boot of the machine."""
    sources = hashlib.sha256()
    for path in sorted(Path(triplewire.__file__).parent.rglob("*.py")):
        sources.update(path.read_bytes())
    boot = _BOOT.read_text().strip() if _BOOT.exists() else str(psutil.boot_time())
    return f"{sources.hexdigest()[:16]}-{hashlib.sha256(boot.encode()).hexdigest()[:8]}"


def _remove_stale(directory: Path, kept: str) -> None:
    """Remove directories of other sources and earlier boots."""
    if not directory.is_dir():
        return
    for each in directory.iterdir():
        if each.name != kept and (each / "lock").exists():
            with (each / "lock").open("rb") as lock, suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(each, ignore_errors=True)
