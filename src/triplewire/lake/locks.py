"""Locks: one housekeeper at a time, in whichever process."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from triplewire.errors import Conflict


@contextmanager
def housekeeping(table: Path, *, wait: bool = False) -> Iterator[None]:
    """Holds the lock of a table. Raises Conflict if another holds it, unless it is to be waited for. The lock goes
    with its process, however that ends."""
    table.parent.mkdir(parents=True, exist_ok=True)
    with (table.parent / f"{table.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            raise Conflict(f"another process keeps house in {table}") from None
        yield
