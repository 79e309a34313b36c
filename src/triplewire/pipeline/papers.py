"""Papers: small files that the driver writes and others read."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole, or as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}")
    with scratch.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    scratch.rename(path)


def keep_newest(path: Path, count: int) -> None:
    """Drop all files of a directory but the last that were written."""
    files = [each for each in path.iterdir() if not each.name.startswith(".")]
    for each in sorted(files, key=lambda each: each.stat().st_mtime_ns)[:-count]:
        each.unlink(missing_ok=True)
