"""Ports of the jobs: openers of log, registry, outboxes and lake that pickle and are called in the workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from triplewire.continuous.state import StateGenerations
from triplewire.continuous.windows.static_data import StaticData
from triplewire.matching.event_history import ColdTier
from triplewire.storage.lake.ports import Lake
from triplewire.storage.log.ports import ErasableLog, MeasuredLog
from triplewire.storage.outbox import Outbox
from triplewire.storage.registry.ports import RedactableRegistry, Registry


@dataclass(frozen=True)
class ErasableStores:
    """What can forget, beside the lake."""

    registry: RedactableRegistry
    log: ErasableLog
    outbox: Outbox
    state: StateGenerations
    """The state of continuous queries."""


@dataclass(frozen=True)
class JobPorts:
    """Each opener must pickle, and opens the same thing in every process."""

    open_log: Callable[[], MeasuredLog]
    open_registry: Callable[[], Registry]
    open_outbox: Callable[[str], Outbox]
    """Takes the id of the run of the job that writes."""
    open_lake: Callable[[], Lake]
    open_archive: Callable[[], ColdTier]
    """What the lake keeps, event by event."""
    open_static_data: Callable[[], StaticData]
    """Opens the graphs that windowed queries read outside of their windows."""
    open_stores: Callable[[], ErasableStores]
    """All of these that can forget, for whoever erases."""
    lake_files: Path
    """Where workers write data files: the table's directory."""
    index_files: Path
    """Where the workers of a machine have their index of subscriptions, which they may lose at any time."""
