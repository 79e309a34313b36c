"""Ports of the jobs: openers of log, registry, outboxes and lake that pickle and are called in the workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from triplewire.config.tracing import Tracer
from triplewire.continuous.state import StateGenerations
from triplewire.storage.lake.ports import Lake
from triplewire.storage.log.ports import ErasableLog, MeasuredLog
from triplewire.storage.outbox import Outbox
from triplewire.storage.registry.ports import RedactableRegistry, Registry
from triplewire.storage.signals import SignalReceiver

if TYPE_CHECKING:
    # Both are slow to import, and the driver does not need them.
    from triplewire.continuous.windows.static_data import StaticData
    from triplewire.matching.event_history import ColdTier


@dataclass(frozen=True)
class ErasableStores:
    """The stores from which data can be erased, beside the lake."""

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
    """Opens the lake as a history of events."""
    open_static_data: Callable[[], StaticData]
    """Opens the graphs that windowed queries read outside of their windows."""
    open_stores: Callable[[], ErasableStores]
    """Opens the stores for the eraser."""
    open_signals: Callable[[], SignalReceiver]
    """Opens a receiver that is woken by commits to the log."""
    open_tracer: Callable[[], Tracer | None]
    """Opens a sender of spans, if there is a collector."""
    lake_files: Path
    """The table's directory, where workers write data files."""
    index_files: Path
    """The directory of the index of subscriptions that the workers of a machine share; it may be lost at any time."""
    reports: Path
    """The directory of the reports that resident tasks write for the driver."""
