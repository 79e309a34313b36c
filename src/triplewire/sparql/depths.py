"""Depths: how deep functions may call each other while a query is compiled and written out."""

from __future__ import annotations

import sys

from triplewire.config.limits import QUERY_NESTING

FRAMES = 300
"""Calls that one level of a query may take at worst: it becomes a few levels of SQL, each of which is written by some
tens of functions that call each other."""


def ensure_depth() -> None:
    """For processes that compile: from here on a query that is nested as deeply as the limit allows can be. Only ever
    raises the interpreter's own limit, which is meant for endless recursion."""
    needed = QUERY_NESTING * FRAMES
    if sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)
