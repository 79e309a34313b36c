"""Guards: the log as Spark's tasks read it. Apart from the other twins: processes that only plan a batch import this
and no more, and they have little time to answer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from triplewire.clock import SystemClock
from triplewire.log.guards import GuardedLog
from triplewire.log.sqlite import SqliteLog
from triplewire.registry.erasures import pending
from triplewire.registry.sqlite import SqliteRegistry


def open_log(path: Path) -> GuardedLog:
    """The log without what is being erased: a batch that is replayed does not bring it back."""
    registry = SqliteRegistry(path, SystemClock())
    return GuardedLog(SqliteLog(path, SystemClock()), partial(pending, registry))
