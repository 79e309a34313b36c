"""A process that appends to a log until something ends it. It writes each acknowledged range to its output."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from triplewire.model.clock import SystemClock
from triplewire.model.errors import StorageFull
from triplewire.storage.log.ports import Publication
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.testing import publication

GROUP = 3
"""Events of one append, which must all be there or none of them."""


def group(number: int, stream: str) -> Publication:
    return publication(*range(number * GROUP, (number + 1) * GROUP), stream=stream)


def acknowledge(taken: Sequence[int], number: int) -> None:
    sys.stdout.write(f"{number} {taken[0]}\n")
    sys.stdout.flush()


def forever(log: SqliteLog, stream: str) -> None:
    number = 0
    while True:
        acknowledge(log.append([group(number, stream)])[0], number)
        number += 1


def until_full(log: SqliteLog, stream: str) -> None:
    """Append to a file that may not grow beyond 200 kB, until it is full; then lift the limit and append once more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    number = 0
    try:
        while True:
            acknowledge(log.append([group(number, stream)])[0], number)
            number += 1
    except StorageFull:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    number += 1
    acknowledge(log.append([group(number, stream)])[0], number)


if __name__ == "__main__":
    _, story, path, name = sys.argv
    {"forever": forever, "until_full": until_full}[story](SqliteLog(Path(path), SystemClock()), name)
