"""Disks: what is written is there when the machine is switched off and on again."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """A file with what is in it, or a directory with the names in it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
