"""Columns: arrays in files, which all workers of a machine have in their memory at once.

A file is mapped as long as it may ever get, so that a mapping never has to grow while somebody reads it. The file
itself is only as long as the blocks that are reserved for it: who copies a directory must not copy gigabytes of
nothing. They are reserved before anything is written to them, because a full disk that is first noticed through a
mapping kills the process.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from triplewire.config.limits import INDEX_FILE_BYTES
from triplewire.model.errors import StorageFull
from triplewire.native.arrays import Records

Allocate = Callable[[int, int, int], None]
"""Reserves blocks for a file that is open: from a place on, so many bytes. Raises OSError where there are none."""

_STEP = 1 << 16
"""Bytes that are reserved at least."""

_SHORT = sys.platform == "linux"
"""Whether memory behind the end of a file is there as soon as the file is longer. Elsewhere that is not said, and the
files are holes."""


class Torn(Exception):
    """A file is not what it should be. All of them are made anew, from the registry."""


def allocate(file: int, start: int, length: int) -> None:
    """Reserve blocks; where the system cannot, zeros take their place."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, start, length)
        return
    zeros = bytes(_STEP)
    for place in range(start, start + length, _STEP):
        os.pwrite(file, zeros[: start + length - place], place)


def mapped(path: Path, length: int, least: int) -> mmap.mmap:
    """A file as memory that is shared with all who map it. Where it is shorter than `length`, the rest is not to be
    touched before it is reserved; then under the lock. Raises Torn where there is no file, or none of `least` bytes."""
    try:
        with path.open("r+b") as file:
            size = os.fstat(file.fileno()).st_size
            if size < least:
                raise Torn(path)
            if size >= length:
                return mmap.mmap(file.fileno(), length)
            file.truncate(length)
            try:
                return mmap.mmap(file.fileno(), length)
            finally:
                if _SHORT:
                    file.truncate(size)
    except FileNotFoundError:
        raise Torn(path) from None


def reserve(path: Path, start: int, stop: int, allocate: Allocate) -> None:
    """Have blocks for a part of a file. Raises StorageFull."""
    try:
        with path.open("r+b") as file:
            allocate(file.fileno(), start, stop - start)
    except OSError as error:
        raise StorageFull(f"there is no room on the disk for the index of subscriptions: {error}") from error


class Column:
    """Records of one kind, one after the other. Who writes knows how many there are; who reads is told."""

    def __init__(self, path: Path, kind: np.dtype[Any], reserved: int, allocate: Allocate) -> None:
        """Raises Torn."""
        self.size = 0
        self.reserved = reserved
        """Bytes, from the beginning on."""
        self._path = path
        self._allocate = allocate
        memory = mapped(path, INDEX_FILE_BYTES, reserved)
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
        reserve(self._path, self.reserved, upto, self._allocate)
        self.reserved = upto
