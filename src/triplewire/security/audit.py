"""The audit log: append-only lines of JSON in a folder that several processes share.

There are two files: acts and refusals. A client can be refused as often as it likes, so refusals are rotated by
themselves and push out nothing but other refusals.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from triplewire.config.files import sync
from triplewire.model.errors import StorageFull

AUDIT_BYTES: Final = 16 * 1024 * 1024
"""Bytes of a file of the audit log, some 60,000 lines; then another is begun."""

AUDIT_VOLUMES: Final = 16
"""Files that are kept of acts, and as many of refusals: at most 256 MB of each."""

ACTS = "acts"
REFUSALS = "refusals"
BOOKS = (ACTS, REFUSALS)

_ENDING = ".jsonl"


@dataclass(frozen=True)
class AuditLog:
    """The audit log in a folder. A file that has `size` bytes is rotated, and the oldest ones are deleted."""

    folder: Path
    size: int = AUDIT_BYTES
    volumes: int = AUDIT_VOLUMES
    """How many files of each book are kept, including the one that is written to."""

    def write(self, book: str, records: Iterable[Mapping[str, Any]], *, durable: bool = False) -> None:
        """Append records, all or none; with `durable` they are on the disk then. Raises StorageFull."""
        lines = b"".join(orjson.dumps(dict(each)) + b"\n" for each in records)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._open(book) as file:
                is_new = os.fstat(file.fileno()).st_size == 0
                _append_lines(file, lines, durable=durable)
            if durable and is_new:
                sync(self.folder)
        except OSError as error:
            raise StorageFull(f"the audit log cannot be written: {error.strerror}") from error

    def read(self, books: Iterable[str] = BOOKS) -> Iterator[dict[str, Any]]:
        """All records, by time."""
        files = [path for book in books for path in (*self._older(book), self.folder / f"{book}{_ENDING}")]
        found = [each for path in files for each in _read_records(path)]
        return iter(sorted(found, key=lambda each: str(each.get("at", ""))))

    def _open(self, book: str) -> BinaryIO:
        """Open the newest file, locked until it is closed, and with room in it."""
        path = self.folder / f"{book}{_ENDING}"
        while True:
            file = path.open("ab", buffering=0)
            fcntl.flock(file, fcntl.LOCK_EX)
            found = os.fstat(file.fileno())
            here = os.stat(path).st_ino if path.exists() else None
            if found.st_ino == here and found.st_size < self.size:
                os.fchmod(file.fileno(), 0o600)
                return file
            if found.st_ino == here:
                self._rotate(book, path)
            file.close()

    def _rotate(self, book: str, path: Path) -> None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        path.rename(self.folder / f"{book}-{stamp}{_ENDING}")
        # Without this a power failure could undo the rename, and the next file would replace the full one.
        sync(self.folder)
        for old in self._older(book)[: -self.volumes + 1 or None]:
            old.unlink(missing_ok=True)

    def _older(self, book: str) -> list[Path]:
        return sorted(self.folder.glob(f"{book}-*{_ENDING}"))


def _append_lines(file: BinaryIO, lines: bytes, *, durable: bool) -> None:
    """Append lines; if the disk takes only a part, the file is truncated to what it was."""
    size = os.fstat(file.fileno()).st_size
    try:
        written = file.write(lines)
        if written != len(lines):
            raise OSError(0, "the disk is full")
        if durable:
            os.fdatasync(file.fileno())
    except OSError:
        os.ftruncate(file.fileno(), size)
        raise


def _read_records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
