"""Doubles and samples for tests of Triplewire, and of programs that embed it."""

from triplewire.testing.events import event, publication
from triplewire.testing.faults import Crash, Fault, Faults
from triplewire.testing.logs import FaultyLog, FaultyOutbox, GatedLog
from triplewire.testing.shops import Shop
from triplewire.testing.twins import KINDS, Twin, twin

__all__ = [
    "KINDS",
    "Crash",
    "Fault",
    "Faults",
    "FaultyLog",
    "FaultyOutbox",
    "GatedLog",
    "Shop",
    "Twin",
    "event",
    "publication",
    "twin",
]
