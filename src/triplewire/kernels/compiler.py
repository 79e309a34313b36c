"""Decorators that compile Python functions with numba. Machine code is cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from triplewire.kernels.cache import cache_directory

F = TypeVar("F", bound=Callable[..., object])

numba.config.CACHE_DIR = str(cache_directory())  # type: ignore[attr-defined]

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
