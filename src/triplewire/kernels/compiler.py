"""Decorators that compile Python functions with numba, and the types of the arrays that they take.

Machine code is cached on disk in a directory whose name is a hash of all compiled sources: numba itself notices that a
function has changed, but not one that it calls.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])

ROOT = Path(__file__).parent.parent
COMPILED_FOLDERS = ("continuous/join_network", "kernels", "matching/bags", "matching/index")
"""All folders with compiled functions. A test holds that there are no others: their machine code would go stale."""


def compiled_sources() -> list[Path]:
    return sorted(path for folder in COMPILED_FOLDERS for path in (ROOT / folder).glob("*.py"))


def _cache_directory() -> Path:
    sources = hashlib.sha256(numba.__version__.encode())
    for path in compiled_sources():
        sources.update(path.read_bytes())
    configured = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    root = Path(configured) if configured else Path.home() / ".cache"
    return root / "triplewire" / f"compiled-{sources.hexdigest()[:16]}"


numba.config.CACHE_DIR = str(_cache_directory())  # type: ignore[attr-defined]

# Without reference counts of arrays (`_nrt`): compiled code allocates none, and counting takes longer than matching.
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "_nrt": False}


def compiled(function: F) -> F:
    """Compile a function at its first call, for the types of its arguments. It releases the GIL while it runs."""
    return cast(F, numba.njit(cache=True, **_OPTIONS)(function))


def inlined(function: F) -> F:
    """Compile a function into each caller: a call costs much, because an array argument is passed as several words."""
    return cast(F, numba.njit(forceinline=True, **_OPTIONS)(function))


def unfolded(function: F) -> F:
    """Compile a function that has a single caller there, and nowhere else."""
    return cast(F, numba.njit(inline="always", **_OPTIONS)(function))
