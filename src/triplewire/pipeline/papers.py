"""Papers: small files that the driver writes and others read."""

from __future__ import annotations

from pathlib import Path


def keep_newest(path: Path, count: int) -> None:
    """Drop all files of a directory but the last that were written."""
    files = [each for each in path.iterdir() if not each.name.startswith(".")]
    for each in sorted(files, key=lambda each: each.stat().st_mtime_ns)[:-count]:
        each.unlink(missing_ok=True)
