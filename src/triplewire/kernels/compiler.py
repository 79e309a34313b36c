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
import numpy as np
import numpy.typing as npt

# What is kept is under a name that follows from all sources that are compiled: numba itself notices that a function
# has changed, but not one that it calls.

F = TypeVar("F", bound=Callable[..., object])

_ROOT = Path(__file__).parent.parent
_COMPILED = ("kernels", "matching/index", "matching/bags", "continuous/join_network")
"""Where compiled functions are."""


def _cache_directory() -> Path:
    sources = hashlib.sha256(numba.__version__.encode())
    for path in sorted(path for part in _COMPILED for path in (_ROOT / part).glob("*.py")):
        sources.update(path.read_bytes())
    wished = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    root = Path(wished) if wished else Path.home() / ".cache"
    return root / "triplewire" / f"compiled-{sources.hexdigest()[:16]}"


numba.config.CACHE_DIR = str(_cache_directory())  # type: ignore[attr-defined]


# Arrays are not counted by those who refer to them: nothing is allocated here, and to count takes longer than to match.
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "_nrt": False}


def compiled(function: F) -> F:
    """Compile when it is first called, for the types that it is called with. Others that run at the same time go on:
    it needs no interpreter while it runs."""
    return cast(F, numba.njit(cache=True, **_OPTIONS)(function))


def inlined(function: F) -> F:
    """The same for what is a part of the functions that call it. To call one costs more than it may seem: what it is
    given is many arrays, each of them several words."""
    return cast(F, numba.njit(forceinline=True, **_OPTIONS)(function))


def unfolded(function: F) -> F:
    """The same for what is called in one place only: it is compiled there, and nowhere else."""
    return cast(F, numba.njit(inline="always", **_OPTIONS)(function))


# Types of arrays that compiled code reads and writes.

Records = npt.NDArray[Any]
Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
