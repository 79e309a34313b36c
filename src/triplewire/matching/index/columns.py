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

from triplewire.kernels.compiler import Int8, Int32, Int64, Records, compiled
from triplewire.model.errors import StorageFull

INDEX_FILE_BYTES: Final = 16 * 1024**3
"""Each file of the index of subscriptions. It is mapped at this length and reserved as it grows; a hundred bytes and
more are in the largest for each subscription, so that they hold some 80 million."""


# A file is mapped as long as it may ever get, so that a mapping never has to grow while somebody reads it. The file
# itself is only as long as the blocks that are reserved for it: who copies a directory must not copy gigabytes of
# nothing. They are reserved before anything is written to them, because a full disk that is first noticed through a
# mapping kills the process.

Allocate = Callable[[int, int, int], None]
"""Reserves blocks for a file that is open: from a place on, so many bytes. Raises OSError where there are none."""

_STEP = 1 << 16
"""Bytes that are reserved at least."""

_SHORT = sys.platform == "linux"
"""Whether memory behind the end of a file is there as soon as the file is longer. Elsewhere that is not said, and the
files are holes."""


class StaleIndex(Exception):
    """A file is not what it should be. All of them are made anew, from the registry."""


def allocate(file: int, start: int, length: int) -> None:
    """Reserve blocks; where the system cannot, zeros take their place."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, start, length)
        return
    zeros = bytes(_STEP)
    for place in range(start, start + length, _STEP):
        os.pwrite(file, zeros[: start + length - place], place)


def map_file(path: Path, length: int, least: int) -> mmap.mmap:
    """A file as memory that is shared with all who map it. Where it is shorter than `length`, the rest is not to be
    touched before it is reserved; then under the lock. Raises Torn where there is no file, or none of `least` bytes."""
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
    """Have blocks for a part of a file. Raises StorageFull."""
    try:
        with path.open("r+b") as file:
            allocate(file.fileno(), start, stop - start)
    except OSError as error:
        raise StorageFull(f"there is no room on the disk for the index of subscriptions: {error}") from error


class MappedColumn:
    """Records of one kind, one after the other. Who writes knows how many there are; who reads is told."""

    def __init__(self, path: Path, kind: np.dtype[Any], reserved: int, allocate: Allocate) -> None:
        """Raises Torn."""
        self.size = 0
        self.reserved = reserved
        """Bytes, from the beginning on."""
        self._path = path
        self._allocate = allocate
        memory = map_file(path, INDEX_FILE_BYTES, reserved)
        self.data: Records = np.frombuffer(memory, kind, INDEX_FILE_BYTES // kind.itemsize)

    def extend(self, more: Records) -> None:
        """There is room for them."""
        self.data[self.size : self.size + len(more)] = more
        self.size += len(more)

    def reserve(self, count: int) -> None:
        """Have room for so many more. Raises StorageFull; then nothing has changed."""
        wanted = (self.size + count) * self.data.itemsize
        if wanted <= self.reserved:
            return
        if wanted > INDEX_FILE_BYTES:
            raise StorageFull(f"the index takes no more subscriptions: {self._path.name} is full")
        upto = min(max(wanted, self.reserved + self.reserved // 4, _STEP), INDEX_FILE_BYTES)
        reserve_blocks(self._path, self.reserved, upto, self._allocate)
        self.reserved = upto


# Tables: from a hash to a record, in a file of its own. One that is full gives way to a longer one in a new file: who
# still reads the old one goes on with it as it was.

SMALLEST = 1 << 10

NAME_SLOT = np.dtype([("name", "i8"), ("number", "i4")], align=True)
"""A group by its name; the number is one more than it is, so that 0 is for nobody."""

MEMBER = np.dtype([("high", "u8"), ("low", "u8"), ("since", "i8"), ("group", "i4"), ("state", "i1")], align=True)
"""A subscription, by a hash of its id: the position at which it was made, and its group, or -1."""

FREE, DECIDED, UNDECIDED, GONE = range(4)
"""States of a member; the index decides about the second, and the evaluator about the third."""

ENDED = np.dtype([("until", "i8"), ("since", "i8"), ("group", "i4")], align=True)
"""A subscription with a group that has ended."""

CALL = np.dtype([("high", "u8"), ("low", "u8"), ("at", "i8"), ("group", "i4"), ("state", "i1")], align=True)
"""What becomes of a subscription at a position: it is decided from there on, or undecided, or gone."""


class MappedTable:
    """The records of one table, in the file that holds now."""

    def __init__(self, directory: Path, name: str, kind: np.dtype[Any], allocate: Allocate) -> None:
        self.number = 0
        """Of the file. There is none at first."""
        self.data: Records = np.zeros(0, kind)
        self._directory = directory
        self._name = name
        self._allocate = allocate

    def follow(self, number: int) -> None:
        """Read from that file from now on. Raises Torn if it is no longer there."""
        if number != self.number:
            self.data, self.number = self._opened(number), number

    def begin(self, size: int) -> Records:
        """The records of a file that comes next, all zeros. Raises StorageFull; then there is no such file."""
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
        """Go on with the file that was begun. Whoever has the old one keeps it."""
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
    """Say the number of each name, and whether it is new: then it is the following one."""
    for each in range(len(names)):
        place = _find_name(table, names[each])
        if table[place].number == 0:
            table[place].name = names[each]
            table[place].number = following + 1
            following += 1
            fresh[each] = 1
        numbers[each] = table[place].number - 1


@compiled
def move_names(old: Records, new: Records) -> None:
    for each in range(len(old)):
        if old[each].number != 0:
            place = _find_name(new, old[each].name)
            new[place].name = old[each].name
            new[place].number = old[each].number


@compiled
def _find_name(table: Records, name: int) -> int:
    """Names are hashes already."""
    place = name & (len(table) - 1)
    while table[place].number != 0 and table[place].name != name:
        place = (place + 1) & (len(table) - 1)
    return place


@compiled
def update_members(table: Records, calls: Records, ended: Records, before: Int8) -> tuple[int, int]:
    """Let each subscription become what is called for, in order. Who had a group and leaves it is told in `ended`, and
    what each was before in `before`. How many have ended, and how many places of the table were taken."""
    ends, taken = 0, 0
    for each in range(len(calls)):
        place = _find_member(table, calls[each].high, calls[each].low)
        there = table[place]
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
    """All but those that are gone; how many."""
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
    place = int(np.int64(high)) & (len(table) - 1)
    while table[place].state != FREE and (table[place].high != high or table[place].low != low):
        place = (place + 1) & (len(table) - 1)
    return place
