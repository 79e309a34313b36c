"""Memory-mapped columns and hash tables: arrays in files that all workers of a machine share.

A file is mapped at the greatest length that it may get, so that a mapping never has to grow while it is read; the file
itself is only as long as the blocks reserved for it. Blocks are reserved before they are written to, because a full
disk that is first noticed through a mapping kills the process. A hash table that is full gives way to a longer one in
a new file; readers of the old one go on with it as it was.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from triplewire.kernels.arrays import Int8, Int32, Int64, Records, record_type
from triplewire.kernels.compiler import compiled
from triplewire.model.errors import StorageFull

INDEX_FILE_BYTES: Final = 16 * 1024**3
"""The longest file of the index, which is mapped at this length and reserved as it grows. The largest file takes a
hundred bytes and more for a subscription, so there may be some 80 million."""


Allocate = Callable[[int, int, int], None]
"""Reserve blocks for an open file: descriptor, start, length in bytes. Raises OSError if the disk is full."""

_STEP = 1 << 16
"""The fewest bytes that are reserved at once."""

_SHORT = sys.platform == "linux"
"""Linux lets a mapping reach behind the end of a file and gives it memory when the file grows. Elsewhere that is not
guaranteed, so files are as long as their mappings, with holes."""


class StaleIndex(Exception):
    """A file of the index is missing or inconsistent: the index is built anew from the registry."""


def allocate(file: int, start: int, length: int) -> None:
    """Reserve blocks, by writing zeros where the system has no call for it."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, start, length)
        return
    zeros = bytes(_STEP)
    for slot in range(start, start + length, _STEP):
        os.pwrite(file, zeros[: start + length - slot], slot)


def map_file(path: Path, length: int, least: int) -> mmap.mmap:
    """Map a file as shared memory. The part behind the end of the file may be touched only after it was reserved,
    under the lock. Raises StaleIndex if the file is missing or shorter than `least` bytes."""
    try:
        with path.open("r+b") as file:
            size = os.fstat(file.fileno()).st_size
            if size < least:
                raise StaleIndex(path)
            if size >= length:
                return mmap.mmap(file.fileno(), length)
            file.truncate(length)
            try:
                return mmap.mmap(file.fileno(), length)
            finally:
                if _SHORT:
                    file.truncate(size)
    except FileNotFoundError:
        raise StaleIndex(path) from None


def reserve_blocks(path: Path, start: int, stop: int, allocate: Allocate) -> None:
    """Reserve blocks for a part of a file. Raises StorageFull."""
    try:
        with path.open("r+b") as file:
            allocate(file.fileno(), start, stop - start)
    except OSError as error:
        raise StorageFull(f"there is no room on the disk for the index of subscriptions: {error}") from error


class MappedColumn:
    """A growing array of records in a file. `size` is the writer's count; readers take theirs from the file header."""

    def __init__(self, path: Path, kind: np.dtype[Any], reserved: int, allocate: Allocate) -> None:
        """Raises StaleIndex."""
        self.size = 0
        self.reserved = reserved
        """Bytes from the start of the file."""
        self._path = path
        self._allocate = allocate
        memory = map_file(path, INDEX_FILE_BYTES, reserved)
        self.data: Records = np.frombuffer(memory, kind, INDEX_FILE_BYTES // kind.itemsize)

    def extend(self, more: Records) -> None:
        """Append records, for which room was reserved."""
        self.data[self.size : self.size + len(more)] = more
        self.size += len(more)

    def reserve(self, count: int) -> None:
        """Reserve room for `count` more records. Raises StorageFull and leaves all as it was."""
        wanted = (self.size + count) * self.data.itemsize
        if wanted <= self.reserved:
            return
        if wanted > INDEX_FILE_BYTES:
            raise StorageFull(f"the index takes no more subscriptions: {self._path.name} is full")
        end = min(max(wanted, self.reserved + self.reserved // 4, _STEP), INDEX_FILE_BYTES)
        reserve_blocks(self._path, self.reserved, end, self._allocate)
        self.reserved = end


SMALLEST = 1 << 10

NAME_SLOT = record_type("i8 name", "i4 number")
"""A group by its name. The number is one more than the group's, so that 0 is a free slot."""

MEMBER = record_type("u8 high low", "i8 since", "i4 group", "i1 state")
"""A subscription by a hash of its id: the position at which it was made, and its group, or -1."""

FREE, DECIDED, UNDECIDED, GONE = range(4)
"""States of a member: the index decides DECIDED ones, the evaluator UNDECIDED ones."""

ENDED = record_type("i8 until since", "i4 group")
"""A subscription that had a group and has ended."""

CALL = record_type("u8 high low", "i8 at", "i4 group", "i1 state")
"""A change of a subscription at a position: from there on it is decided, undecided or gone."""


class MappedTable:
    """A hash table in a file; a longer table is a new file."""

    def __init__(self, directory: Path, name: str, kind: np.dtype[Any], allocate: Allocate) -> None:
        self.number = 0
        """The number of the file; 0 before there is one."""
        self.data: Records = np.zeros(0, kind)
        self._directory = directory
        self._name = name
        self._allocate = allocate

    def follow(self, number: int) -> None:
        """Read from another file from now on. Raises StaleIndex if it is missing."""
        if number != self.number:
            self.data, self.number = self._opened(number), number

    def begin(self, size: int) -> Records:
        """Make the next file, all zeros, and return its records. Raises StorageFull; then there is no such file."""
        path = self._path(self.number + 1)
        path.unlink(missing_ok=True)
        path.touch()
        try:
            reserve_blocks(path, 0, size * self.data.itemsize, self._allocate)
        except StorageFull:
            path.unlink()
            raise
        return self._opened(self.number + 1)

    def change(self, data: Records) -> None:
        """Switch to the file that was begun. Mappings of the old one stay valid."""
        old, self.number, self.data = self._path(self.number), self.number + 1, data
        old.unlink(missing_ok=True)

    def _opened(self, number: int) -> Records:
        path = self._path(number)
        try:
            length = path.stat().st_size
        except FileNotFoundError:
            raise StaleIndex(path) from None
        size = length // self.data.itemsize
        if size * self.data.itemsize != length or size & (size - 1) or not size:
            raise StaleIndex(path)
        return np.frombuffer(map_file(path, length, length), self.data.dtype)

    def _path(self, number: int) -> Path:
        return self._directory / f"{self._name}-{number}"


@compiled
def number_names(table: Records, names: Int64, following: int, numbers: Int32, fresh: Int8) -> None:
    """Write the number of each name into `numbers`; new names are numbered from `following` on and flagged in
    `fresh`."""
    for each in range(len(names)):
        slot = _find_name(table, names[each])
        if table[slot].number == 0:
            table[slot].name = names[each]
            table[slot].number = following + 1
            following += 1
            fresh[each] = 1
        numbers[each] = table[slot].number - 1


@compiled
def move_names(old: Records, new: Records) -> None:
    for each in range(len(old)):
        if old[each].number != 0:
            slot = _find_name(new, old[each].name)
            new[slot].name = old[each].name
            new[slot].number = old[each].number


@compiled
def _find_name(table: Records, name: int) -> int:
    """The slot of a name, which is a hash already."""
    slot = name & (len(table) - 1)
    while table[slot].number != 0 and table[slot].name != name:
        slot = (slot + 1) & (len(table) - 1)
    return slot


@compiled
def update_members(table: Records, calls: Records, ended: Records, before: Int8) -> tuple[int, int]:
    """Apply changes of subscriptions, in order. Write those that leave a group to `ended`, and the former state of
    each to `before`. Return the numbers of ended ones and of slots that were taken."""
    ends, taken = 0, 0
    for each in range(len(calls)):
        slot = _find_member(table, calls[each].high, calls[each].low)
        there = table[slot]
        before[each] = there.state
        if there.state != FREE and there.state != GONE and there.group >= 0:
            ended[ends].until = calls[each].at
            ended[ends].since = there.since
            ended[ends].group = there.group
            ends += 1
        if there.state == FREE:
            if calls[each].state == GONE:
                continue
            there.high = calls[each].high
            there.low = calls[each].low
            taken += 1
        there.since = calls[each].at
        there.group = calls[each].group
        there.state = calls[each].state
    return ends, taken


@compiled
def move_members(old: Records, new: Records) -> int:
    """Copy all members but those that are gone. Return their number."""
    moved = 0
    for each in range(len(old)):
        if old[each].state == DECIDED or old[each].state == UNDECIDED:
            there = new[_find_member(new, old[each].high, old[each].low)]
            there.high = old[each].high
            there.low = old[each].low
            there.since = old[each].since
            there.group = old[each].group
            there.state = old[each].state
            moved += 1
    return moved


@compiled
def _find_member(table: Records, high: np.uint64, low: np.uint64) -> int:
    slot = int(np.int64(high)) & (len(table) - 1)
    while table[slot].state != FREE and (table[slot].high != high or table[slot].low != low):
        slot = (slot + 1) & (len(table) - 1)
    return slot
