"""What the pipeline is given: ways to open each port, which travel to the workers and are called there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from triplewire.matching.event_history import ColdTier
from triplewire.ongoing.windows.backgrounds import Background
from triplewire.pipeline.generations import Generations
from triplewire.storage.lake.ports import Lake
from triplewire.storage.log.ports import ErasableLog, ErasableOutbox, MeasuredLog, Outbox
from triplewire.storage.registry.ports import RedactableRegistry, Registry


@dataclass(frozen=True)
class Stores:
    """What can forget, beside the lake."""

    registry: RedactableRegistry
    log: ErasableLog
    outbox: ErasableOutbox
    slow: ErasableOutbox
    ongoing: ErasableOutbox
    kept: Generations
    """What continuous queries keep."""


@dataclass(frozen=True)
class Ports:
    """Each opener must pickle, and opens the same thing in every process."""

    open_log: Callable[[], MeasuredLog]
    open_registry: Callable[[], Registry]
    open_outbox: Callable[[str], Outbox]
    """Takes the id of the query that writes."""
    open_slow: Callable[[str], Outbox]
    """Likewise, of the slow lane."""
    open_ongoing: Callable[[str], Outbox]
    """Likewise, of continuous queries."""
    open_lake: Callable[[], Lake]
    open_archive: Callable[[], ColdTier]
    """What the lake keeps, event by event."""
    open_background: Callable[[], Background]
    """What continuous queries know beside their windows."""
    open_stores: Callable[[], Stores]
    """All of these that can forget, for whoever erases."""
    lake_files: Path
    """Where workers write data files: the table's directory."""
    index_files: Path
    """Where the workers of a machine have their index of subscriptions, which they may lose at any time."""
