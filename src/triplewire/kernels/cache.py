"""The cache of compiled code: a directory whose name is a hash of all compiled sources.

numba itself notices that a function has changed, but not one that it calls. This module does without numba, so that any
process can ask whether the code is there.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent.parent
COMPILED_FOLDERS = ("continuous/join_network", "kernels", "matching/bags", "matching/index")
"""All folders with compiled functions. A test holds that there are no others: their machine code would go stale."""

_COMPLETE = "complete"


def compiled_sources() -> list[Path]:
    return sorted(path for folder in COMPILED_FOLDERS for path in (ROOT / folder).glob("*.py"))


def cache_directory() -> Path:
    sources = hashlib.sha256(version("numba").encode())
    for path in compiled_sources():
        sources.update(path.read_bytes())
    configured = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    root = Path(configured) if configured else Path.home() / ".cache"
    return root / "triplewire" / f"compiled-{sources.hexdigest()[:16]}"


def is_compiled() -> bool:
    """Whether the matching code was compiled to its end, on this machine and from these sources."""
    return (cache_directory() / _COMPLETE).exists()


def mark_compiled() -> None:
    """Note that the matching code is compiled; does nothing where there can be no cache."""
    with suppress(OSError):
        (cache_directory() / _COMPLETE).touch()
