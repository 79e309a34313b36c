"""Doubles and samples for tests of Triplewire, and of programs that embed it."""

from triplewire.testing.doubles import (
    TWIN_KINDS,
    Crash,
    CrashRecorder,
    Fault,
    Faults,
    FaultyLog,
    FaultyOutbox,
    GatedLog,
    Twin,
    open_twin,
)
from triplewire.testing.samples import Shop, event, publication

__all__ = [
    "TWIN_KINDS",
    "Crash",
    "CrashRecorder",
    "Fault",
    "Faults",
    "FaultyLog",
    "FaultyOutbox",
    "GatedLog",
    "Shop",
    "Twin",
    "event",
    "open_twin",
    "publication",
]
