"""The log as Spark's tasks read it: without events that are being erased.

It stands apart from the other wiring: processes that only plan a batch import this and no more, and have little time
to answer.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from triplewire.model.clock import SystemClock
from triplewire.storage.log.erasure_view import ErasureView
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.registry.erasure import pending_erasures
from triplewire.storage.registry.sqlite import SqliteRegistry


def open_log(path: Path) -> ErasureView:
    """Open the log without events that are being erased, so that a replayed batch does not bring them back."""
    registry = SqliteRegistry(path, SystemClock())
    return ErasureView(SqliteLog(path, SystemClock()), partial(pending_erasures, registry))
