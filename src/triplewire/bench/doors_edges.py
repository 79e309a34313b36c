"""Edges for `bench doors`: one for each way of letting in that is compared, each over a directory of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from triplewire.bench.broker import free_port
from triplewire.bench.fanout_servers import HOST, wait_idle, wait_listening
from triplewire.config import Settings
from triplewire.model.clock import SystemClock
from triplewire.service.processes import ChildProcess, stop_all

_IDLE_SECONDS = 20.0


def settings_in(folder: Path) -> Settings:
    """Of an edge that is not there yet, on a free port."""
    return Settings(data=folder, host=HOST, port=free_port())


@contextmanager
def edges_of(settings: Sequence[Settings]) -> Iterator[list[ChildProcess]]:
    """Those edges, when all have done what they do first; they are stopped afterwards."""
    children = [ChildProcess("edge", each, SystemClock()) for each in settings]
    try:
        for child in children:
            child.settings.data.mkdir()
            child.start()
        for child in children:
            wait_listening(child)
        wait_idle([child.pid or 0 for child in children], _IDLE_SECONDS)
        yield children
    finally:
        stop_all(children)
