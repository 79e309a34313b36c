"""The housekeeper: looks after the lake by itself, in a thread beside the queries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Event as Flag
from threading import Thread
from typing import Any

from pyspark import SparkContext

from triplewire.config import limits
from triplewire.model.clock import Clock
from triplewire.model.errors import Conflict
from triplewire.pipeline.erasures import Eraser
from triplewire.storage.lake.balance import BalanceSettings
from triplewire.storage.lake.maintenance import (
    MaintenanceContext,
    MaintenanceProgress,
    checkpoint,
    compact,
    hold_maintenance_lock,
    is_compaction_due,
    vacuum,
)
from triplewire.storage.lake.read_counts import load_read_counts
from triplewire.storage.lake.rebalancing import rebalance
from triplewire.storage.lake.retention import LakeRetention, apply_retention
from triplewire.storage.lake.survey import lake_totals

logger = logging.getLogger(__name__)

POOL = "housekeeping"


@dataclass(frozen=True)
class Rules:
    """By which a lake is kept: for how long, how even, and for how many hours older versions can be read."""

    retention: LakeRetention = field(default_factory=LakeRetention)
    balance: BalanceSettings = field(default_factory=BalanceSettings)
    hours: int = limits.TRAVEL_HOURS


class Housekeeper:
    """Does what is due, one piece of work at a time. Whatever fails is tried again later: nothing depends on it."""

    def __init__(self, house: MaintenanceContext, rules: Rules, clock: Clock) -> None:
        self._house = replace(house, told=self._hear)
        self._rules = rules
        self._clock = clock
        self._progress: MaintenanceProgress | None = None
        self._error = ""
        self._moved = 0
        self._checkpoint = -1
        self._swept, self._retained = clock.ticks(), clock.ticks()
        self._steps: tuple[Callable[[], None], ...] = (self._compact, self._retain, self._write_down, self._sweep)

    def state(self) -> Mapping[str, Any]:
        """What there is and what is being done, for those who ask."""
        told: dict[str, Any] = {**lake_totals(self._house.lake.files()), "moved": self._moved}
        now = self._progress
        if now is not None:
            told |= {"work": now.work, "done": now.done, "of": now.of}
        return told | ({"error": self._error} if self._error else {})

    def turn(self) -> None:
        """Everything that is due now, unless another process keeps house."""
        try:
            with hold_maintenance_lock(self._house.table):
                for step in self._steps:
                    step()
            self._error = ""
        except Conflict as error:
            logger.info("housekeeping waits: %s", error)
        except Exception as error:
            self._error = str(error)[:500]
            raise
        finally:
            self._progress = None

    def _hear(self, progress: MaintenanceProgress) -> None:
        self._progress = progress

    def _compact(self) -> None:
        if is_compaction_due(self._house.lake.files()):
            self._moved += compact(self._house)
            rebalance(
                self._house,
                self._rules.balance,
                load_read_counts(self._house.table.with_name("reads"), self._clock.now()),
            )

    def _retain(self) -> None:
        shortest = self._rules.retention.shortest
        interval = max(limits.RETAIN_SECONDS, (shortest or 0.0) / 24)
        if self._clock.ticks() - self._retained < interval:
            return
        self._retained = self._clock.ticks()
        lost = apply_retention(
            self._house, self._rules.retention, datetime.fromtimestamp(self._clock.now() / 1_000_000, UTC)
        )
        if lost:
            logger.info("retention let go of %s quads", lost)

    def _write_down(self) -> None:
        version = self._house.lake.files().version
        if version - self._checkpoint >= limits.CHECKPOINT_COMMITS:
            self._checkpoint = checkpoint(self._house.table, self._rules.hours) or -1

    def _sweep(self) -> None:
        if self._clock.ticks() - self._swept < limits.VACUUM_SECONDS:
            return
        self._swept = self._clock.ticks()
        self._progress = MaintenanceProgress("deleting what nobody reads", 0, 0)
        vacuum(self._house.table, self._rules.hours)


class Keeping:
    """A housekeeper and an eraser at work, in a thread of their own."""

    def __init__(self, keeper: Housekeeper, eraser: Eraser, context: SparkContext) -> None:
        self._keeper = keeper
        self._eraser = eraser
        self._context = context
        self._stop = Flag()
        self._thread = Thread(target=self._run, name=POOL, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End what is being done. It is begun again another time; what was not committed was not done."""
        self._stop.set()
        self._context.cancelJobGroup(POOL)
        self._thread.join(limits.FAREWELL_SECONDS)

    def _run(self) -> None:
        self._context.setLocalProperty("spark.scheduler.pool", POOL)
        self._context.setJobGroup(POOL, "looks after the lake", interruptOnCancel=True)
        while not self._stop.wait(limits.HOUSE_SECONDS):
            try:
                self._eraser.advance()
                self._keeper.turn()
            except Exception:
                if not self._stop.is_set():
                    logger.exception("housekeeping failed; it is tried again")
                    self._stop.wait(limits.HOUSE_PAUSE_SECONDS)
