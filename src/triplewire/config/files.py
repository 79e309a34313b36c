"""Durable files: atomic replacement, file locks, and the format of a data directory.

Every file that is written whole is written by `replace_file` or `replacing`, and every lock between processes is a
`file_lock`. This stands below storage, because process status and the audit log need it, too.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from triplewire.model.errors import BadRequest, Conflict

FORMAT = 3
"""The format of data directories that this version writes and reads. It changes whenever a file in them does."""

_FORMAT_FILE = "format"
_FILES_OF_FORMAT_1 = ("log.db", "access.db", "lake")
"""Format 1 had no file that says so; its directories have one of these."""


def sync(path: Path) -> None:
    """Flush a file, or the names in a directory, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replacing(
    path: Path, *, durable: bool = True, sync_name: bool = True, scratch: Path | None = None
) -> Iterator[BinaryIO]:
    """Give a file to write, which takes the place of `path` when the block ends: whole or, if the block raises or the
    process ends, not at all.

    After the block the new content survives a power failure, unless `durable` is False: for files that are worth
    nothing after a crash. Without `sync_name` a power failure leaves the old content or the new, each whole, at the
    cost of one sync instead of two. Processes may replace one file at the same time: one of them wins. The content is
    written to `scratch`, a file in the same directory that by default is named after the process.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = scratch or path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with scratch.open("wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    if durable and sync_name:
        sync(path.parent)


def replace_file(path: Path, data: bytes, *, durable: bool = True, sync_name: bool = True) -> None:
    """Put `data` in the place of a file, as `replacing` does."""
    with replacing(path, durable=durable, sync_name=sync_name) as file:
        file.write(data)


@contextmanager
def file_lock(path: Path, taken: str, *, wait: bool = False) -> Iterator[None]:
    """Hold a lock that one process has at a time. It goes with its process, however that ends.

    Raises Conflict with the message `taken` if another process holds it, unless `wait` says to wait for it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            raise Conflict(taken) from None
        yield


def check_format(data: Path) -> None:
    """Raise BadRequest, with both numbers, for a data directory of another format than `FORMAT`. One that is empty or
    not there has none."""
    found = _format_of(data)
    if found not in (None, str(FORMAT)):
        raise BadRequest(
            f"the data directory {data} has format {found}, and this version of Triplewire reads and writes format "
            f"{FORMAT}: use the version that wrote it to export its events (`triplewire export`), and import them into "
            "an empty directory (`triplewire import`)"
        )


def prepare_directory(data: Path) -> None:
    """Make a data directory, or check that the one that is there has this format. Raises BadRequest."""
    check_format(data)
    if _format_of(data) is None:
        replace_file(data / _FORMAT_FILE, f"{FORMAT}\n".encode())


def _format_of(data: Path) -> str | None:
    try:
        return (data / _FORMAT_FILE).read_text().strip()[:32]
    except FileNotFoundError:
        return "1" if any((data / name).exists() for name in _FILES_OF_FORMAT_1) else None
