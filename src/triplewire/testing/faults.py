"""Faults: failure markers that a test puts into its data instead of waiting for bad luck."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import TypeVar

from triplewire.model.errors import StorageFull, Unavailable

T = TypeVar("T")


class Fault(Enum):
    """What happens at one call."""

    NONE = auto()
    """It works."""
    FULL = auto()
    """The disk refuses: StorageFull, nothing written."""
    AWAY = auto()
    """The store does not answer: Unavailable, nothing written."""
    CRASH_BEFORE = auto()
    """The process dies before the write."""
    CRASH_AFTER = auto()
    """The process dies after the write and before it could say so."""


class Crash(Exception):
    """Stands for the death of the process: whoever holds the faulty double must be thrown away with it."""


class Faults:
    """A list of markers, one for each call; after the last of them everything works."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._faults = iter(faults)

    def strike(self, call: Callable[[], T]) -> T:
        """Make the next call as its marker says."""
        fault = next(self._faults, Fault.NONE)
        if fault is Fault.FULL:
            raise StorageFull("the disk is full, as the test wants it")
        if fault is Fault.AWAY:
            raise Unavailable("the store does not answer, as the test wants it")
        if fault is Fault.CRASH_BEFORE:
            raise Crash
        result = call()
        if fault is Fault.CRASH_AFTER:
            raise Crash
        return result
