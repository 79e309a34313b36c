"""Confines: what the operating system lets a process of queries have, whatever runs in it."""

from __future__ import annotations

import os
import re
import resource

from triplewire.config import limits

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
_NICENESS = 5


def size(text: str) -> int:
    """How many bytes `2GB` or `512 MiB` are. Raises ValueError."""
    found = _SIZE.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is no size; write it as 2GB or 512MiB")
    power = " kmgt".index(found[2].lower() or " ")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


def confine(memory: str) -> None:
    """Hold this process to the memory of a query and of its own, and let the edge go before it.

    DuckDB keeps to its own limit; this holds everything else too. It counts what can be written to, not what is
    mapped: libraries are large.
    """
    most = size(memory) + limits.QUERY_PROCESS_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(_NICENESS)
