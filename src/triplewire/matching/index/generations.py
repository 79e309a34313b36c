"""Generations: the directory of the index on this machine, and who may write there.

```
<directory>/<sources>-<boot>/lock      who has it writes
<directory>/<sources>-<boot>/7/        the files of the seventh generation
```

The index follows from the registry, so nothing of it has to last: what other sources wrote, or what was written
before
the machine was started, is not looked at but removed; what was left half written gives way to a new generation. The
directory may be deleted at any time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import psutil

import triplewire
from triplewire.matching.index.columns import Allocate, Torn, allocate
from triplewire.matching.index.files import Files
from triplewire.matching.index.store import Store
from triplewire.model.errors import StorageFull

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Generations:
    """One worker's access to the index of its machine. Not safe for threads."""

    def __init__(self, directory: Path, allocate: Allocate = allocate) -> None:
        """Raises StorageFull."""
        self._root = directory / written_by()
        self._allocate = allocate
        self._lock: int | None = None
        _sweep(directory, self._root.name)
        with self.locked():
            pass

    def __del__(self) -> None:
        if getattr(self, "_lock", None) is not None:
            os.close(self._lock)  # type: ignore[arg-type]

    @property
    def files(self) -> Files:
        """Of the generation that this worker knows."""
        return self.store.files

    @contextmanager
    def locked(self) -> Iterator[Store]:
        """Alone, with the store of the newest generation, whether or not it was known before. Raises StorageFull."""
        lock = self._held()
        try:
            self._follow()
            yield self.store
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)

    def renew(self) -> Store:
        """Under the lock: a generation that knows nothing. Who has the old one keeps it for as long as it is enough."""
        old = self._newest()
        directory = self._root / str(old + 1)
        try:
            self.store = Store(Files.fresh(directory, self._allocate))
        except (OSError, StorageFull) as error:
            shutil.rmtree(directory, ignore_errors=True)
            raise StorageFull(f"there is no room on the disk for the index of subscriptions: {error}") from error
        for each in range(1, old + 1):
            shutil.rmtree(self._root / str(each), ignore_errors=True)
        return self.store

    def _held(self) -> int:
        """The lock, which is waited for; that of the directory as it is now, should somebody have removed it."""
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

    def _follow(self) -> None:
        newest = self._newest()
        try:
            if not self._known(newest):
                self.store = Store(Files(self._root / str(newest), self._allocate))
            elif self.files.header["writing"]:
                raise Torn("somebody left while writing")
            self.files.load()
        except Torn:
            self.renew()

    def _known(self, number: int) -> bool:
        """Is this the generation that the worker has?"""
        path = self._root / str(number) / "header"
        return hasattr(self, "store") and path.exists() and path.stat().st_ino == self.files.inode

    def _newest(self) -> int:
        return max((int(each.name) for each in self._root.iterdir() if each.name.isdigit()), default=0)


@cache
def written_by() -> str:
    """A name that follows from our sources and from when the machine was started."""
    sources = hashlib.sha256()
    for path in sorted(Path(triplewire.__file__).parent.rglob("*.py")):
        sources.update(path.read_bytes())
    boot = _BOOT.read_text().strip() if _BOOT.exists() else str(psutil.boot_time())
    return f"{sources.hexdigest()[:16]}-{hashlib.sha256(boot.encode()).hexdigest()[:8]}"


def _sweep(directory: Path, kept: str) -> None:
    """Remove what others wrote that nobody writes now."""
    if not directory.is_dir():
        return
    for each in directory.iterdir():
        if each.name != kept and (each / "lock").exists():
            with (each / "lock").open("rb") as lock, suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(each, ignore_errors=True)
