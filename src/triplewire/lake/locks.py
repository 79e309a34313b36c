"""Locks: one housekeeper at a time, in whichever process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from triplewire.config.files import file_lock


@contextmanager
def housekeeping(table: Path, *, wait: bool = False) -> Iterator[None]:
    """Holds the lock of a table. Raises Conflict if another holds it, unless it is to be waited for. The lock goes
    with its process, however that ends."""
    lock = table.parent / f"{table.name}.lock"
    with file_lock(lock, f"another process maintains {table}", wait=wait):
        yield
