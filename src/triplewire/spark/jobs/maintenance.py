"""Maintenance in a thread beside the streaming queries: compaction, balance, retention, vacuum, and erasure.

An erasure goes through its steps until no byte is left; a step that was not recorded as done is done again.

```
asked at p ──▶ all queries and the lake are past p ──▶ find ──▶ outbox ──▶ log ──▶ lake ──▶ state ──▶ history ──▶ …
               everything read before p is written by now
```
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext

from triplewire.config.settings import TIME_TRAVEL_HOURS
from triplewire.model import Erasure
from triplewire.model.clock import Clock
from triplewire.model.errors import Conflict, TriplewireError
from triplewire.spark.jobs.ports import ErasableStores
from triplewire.storage.lake.balance import BalanceSettings
from triplewire.storage.lake.erasure import LakeErasure
from triplewire.storage.lake.maintenance import (
    FRESH_FILES,
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
from triplewire.storage.outbox import OutboxLane
from triplewire.storage.registry.erasure import (
    ERASING,
    ERASURE,
    REDACTED,
    ErasureReceipt,
    erasure_from_change,
    receipt_from_change,
    receipt_to_value,
)
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import LANE, QUERY, newest_renewal, request_renewal

STOP_SECONDS: Final = 5.0
"""Time that the maintenance thread has to end when the pipeline stops; it ends with its process in any case."""

MAINTENANCE_SECONDS: Final = 2.0
"""Seconds between two checks of the lake: as often as it grows by a few files."""

MAINTENANCE_PAUSE_SECONDS: Final = 30.0
"""Seconds before maintenance is tried again after a failure, as with a full disk."""

RETAIN_SECONDS: Final = 3_600.0
"""Seconds between two applications of retention, at least: each that drops rows makes every reader copy the lake."""

CHECKPOINT_COMMITS: Final = 100
"""Commits of the lake from one checkpoint to the next: a reader reads that many at most, in some 20 ms."""

VACUUM_SECONDS: Final = 3_600.0
"""Seconds between two vacuums."""

LEFTOVER_SECONDS: Final = 600.0
"""Seconds without a write after which an unfinished data file counts as left behind by a crash. A task writes its file
within seconds."""


logger = logging.getLogger(__name__)

_MICRO = 1_000_000


@dataclass(frozen=True)
class ErasureWork:
    """An erasure, and the losses of events by it."""

    erasure: Erasure
    lake: LakeErasure
    losses: pa.Table


@dataclass
class Eraser:
    """The eraser of a lake. It runs requested erasures in order, and repeats no step that was recorded as done."""

    stores: ErasableStores
    context: MaintenanceContext
    clock: Clock
    memory: float
    """Seconds for which query processes may still hold data that the lake has lost."""
    began: int = 0
    """When this process began: unfinished files from before are written by no process."""
    _torn: dict[str, set[Path]] = field(default_factory=dict)

    def advance(self) -> int:
        """Do what can be done now; return how many erasures are pending. A step that fails is tried again the next
        time."""
        changes = self.stores.registry.list(ERASING)
        for change in changes:
            try:
                self._advance(change)
            except TriplewireError as error:
                logger.warning("erasure %s goes on later: %s", change.key, error)
        return len(changes)

    def _advance(self, change: RegistryChange) -> None:
        receipt = self._receipt(change.key)
        if change.value and not self._passed(change.position):
            return
        if change.value and "history" not in receipt.steps:
            with hold_maintenance_lock(self.context.table):
                receipt = self._take_out(erasure_from_change(change), receipt)
        if "history" in receipt.steps and self._is_forgotten(receipt):
            self._finish(change, receipt)

    def _passed(self, position: int) -> bool:
        """Whether everything that was read before a position is written. Later reads have no erased data."""
        stores = self.stores
        heads = [stores.outbox.head(), self.context.lake.files().position]
        if stores.registry.list(LANE, limit=1):
            heads.append(stores.outbox.head(OutboxLane.SLOW))
        if stores.registry.list(QUERY, limit=1):
            heads.append(stores.outbox.head(OutboxLane.CONTINUOUS))
        return min(heads) >= position

    def _take_out(self, erasure: Erasure, receipt: ErasureReceipt) -> ErasureReceipt:
        """Run the steps that need the maintenance lock. A step that must wait returns None, and ends the run."""
        work, receipt = self._found(erasure, receipt)
        steps: dict[str, Callable[[ErasureWork, ErasureReceipt], ErasureReceipt | None]] = {
            "outbox": self._outbox,
            "log": self._log,
            "lake": self._lake,
            "state": self._state,
            "history": self._history,
        }
        for name, step in steps.items():
            if name not in receipt.steps:
                taken = step(work, receipt)
                if taken is None:
                    break
                receipt = self._put(taken.done(name, self.clock.now()))
        return receipt

    def _found(self, erasure: Erasure, receipt: ErasureReceipt) -> tuple[ErasureWork, ErasureReceipt]:
        """Write the losses before any data goes, so that an erasure that is continued knows all of them."""
        lake = LakeErasure(self.context, erasure)
        losses = lake.remembered()
        if losses is None:
            losses = _merge_losses(lake.losses(), self.stores.log.losses(erasure))
            lake.remember(losses)
        whole = losses["first"].null_count
        counts = {"events": whole, "changed": losses.num_rows - whole, "quads": pc.sum(losses["quads"]).as_py() or 0}
        return ErasureWork(erasure, lake, losses), self._put(receipt.counted(**counts))

    def _outbox(self, work: ErasureWork, receipt: ErasureReceipt) -> ErasureReceipt:
        return receipt.counted(matches=self.stores.outbox.erase(work.losses["position"].to_pylist()))

    def _log(self, work: ErasureWork, receipt: ErasureReceipt) -> ErasureReceipt:
        self.stores.log.erase(work.erasure)
        return receipt

    def _lake(self, work: ErasureWork, receipt: ErasureReceipt) -> ErasureReceipt:
        return receipt.counted(files=work.lake.rewrite())

    def _state(self, work: ErasureWork, receipt: ErasureReceipt) -> ErasureReceipt | None:
        """Let continuous queries rebuild their state from a log and a lake without the erased data."""
        stores = self.stores
        if not stores.registry.list(QUERY, limit=1):
            stores.state.clear()
            return receipt
        asked, said = newest_renewal(stores.registry), stores.registry.get(ERASURE, receipt.id)
        assert said is not None, "a receipt is put with what it is of"
        if asked is None or asked.position < said.position:
            request_renewal(stores.registry)
            return None
        oldest = stores.state.oldest()
        if stores.outbox.head(OutboxLane.CONTINUOUS) < asked.position or (
            oldest is not None and oldest < asked.position
        ):
            return None
        # Since matches were erased, queries may have answered once more from the old state.
        stores.outbox.erase(work.losses["position"].to_pylist())
        return receipt

    def _history(self, work: ErasureWork, receipt: ErasureReceipt) -> ErasureReceipt | None:
        """Revise the table's log, and drop files that crashes left behind. Files of older versions were rewritten with
        the rest."""
        named = {*self.context.lake.files().paths}
        torn = {path for path in work.lake.torn() if str(path) not in named and not self._dropped(path, receipt)}
        waiting = self._torn.setdefault(receipt.id, torn) & torn
        if waiting:
            return None
        if self._torn.pop(receipt.id):
            work.lake.rewrite()
        return receipt.counted(entries=work.lake.revise())

    def _dropped(self, path: Path, receipt: ErasureReceipt) -> bool:
        """Delete an unfinished file if no process writes it any more."""
        # What is written now was read after everything that was asked for before it was passed.
        oldest = max(receipt.requested, self.began, self.clock.now() - LEFTOVER_SECONDS * _MICRO)
        if path.stat().st_mtime * _MICRO >= oldest:
            return False
        path.unlink()
        return True

    def _is_forgotten(self, receipt: ErasureReceipt) -> bool:
        return self.clock.now() >= receipt.steps["lake"] + self.memory * _MICRO

    def _finish(self, change: RegistryChange, receipt: ErasureReceipt) -> None:
        """Erase the name last: without it, the erasure could not be continued."""
        now = self.clock.now()
        if change.value:
            LakeErasure(self.context, erasure_from_change(change)).forget()
            self.stores.registry.redact(change.position, REDACTED)
        done = replace(receipt.done("memory", now).done("name", now), completed=now)
        self.stores.registry.put([(ERASING, change.key, None), (ERASURE, change.key, receipt_to_value(done))])

    def _receipt(self, id: str) -> ErasureReceipt:
        found = self.stores.registry.get(ERASURE, id)
        assert found is not None, "a receipt is put with what it is of"
        return receipt_from_change(found)

    def _put(self, receipt: ErasureReceipt) -> ErasureReceipt:
        if self._receipt(receipt.id) != receipt:
            self.stores.registry.put([(ERASURE, receipt.id, receipt_to_value(receipt))])
        return receipt


def _merge_losses(lake: pa.Table, log: pa.Table) -> pa.Table:
    """Merge the losses of events in lake and log, since retention of one may have dropped what the other has."""
    missing = log.filter(pc.invert(pc.is_in(log["position"], lake["position"].combine_chunks())))
    return pa.concat_tables([lake, missing]).sort_by("position")


MAINTENANCE_POOL = "maintenance"


@dataclass(frozen=True)
class MaintenanceRules:
    """When and how a lake is maintained; `hours` is for how long its older versions can be read."""

    retention: LakeRetention = field(default_factory=LakeRetention)
    balance: BalanceSettings = field(default_factory=BalanceSettings)
    hours: int = TIME_TRAVEL_HOURS
    fresh_files: int = FRESH_FILES
    """Fresh files of the lake from which on they are compacted."""
    checkpoint_commits: int = CHECKPOINT_COMMITS
    """Commits of the lake from one checkpoint to the next."""


class LakeMaintenance:
    """Maintenance of a lake, one step at a time. A step that fails is tried again later; nothing depends on it."""

    def __init__(self, context: MaintenanceContext, rules: MaintenanceRules, clock: Clock) -> None:
        self._context = replace(context, report=self._set_progress)
        self._rules = rules
        self._clock = clock
        self._progress: MaintenanceProgress | None = None
        self._error = ""
        self._moved = 0
        self._checkpoint = -1
        self._swept, self._retained = clock.ticks(), clock.ticks()
        self._steps: tuple[Callable[[], None], ...] = (self._compact, self._retain, self._write_checkpoint, self._sweep)

    def state(self) -> Mapping[str, Any]:
        """Return the size of the lake and the current work, for the heartbeat."""
        state: dict[str, Any] = {**lake_totals(self._context.lake.files()), "moved": self._moved}
        now = self._progress
        if now is not None:
            state |= {"work": now.work, "done": now.done, "of": now.of}
        return state | ({"error": self._error} if self._error else {})

    def run_due(self) -> None:
        """Do everything that is due, unless another process holds the maintenance lock."""
        try:
            with hold_maintenance_lock(self._context.table):
                for step in self._steps:
                    step()
            self._error = ""
        except Conflict as error:
            logger.info("maintenance waits: %s", error)
        except Exception as error:
            self._error = str(error)[:500]
            raise
        finally:
            self._progress = None

    def _set_progress(self, progress: MaintenanceProgress) -> None:
        self._progress = progress

    def _compact(self) -> None:
        if is_compaction_due(self._context.lake.files(), self._rules.fresh_files):
            self._moved += compact(self._context)
            rebalance(
                self._context,
                self._rules.balance,
                load_read_counts(self._context.table.with_name("reads"), self._clock.now()),
            )

    def _retain(self) -> None:
        shortest = self._rules.retention.shortest
        interval = max(RETAIN_SECONDS, (shortest or 0.0) / 24)
        if self._clock.ticks() - self._retained < interval:
            return
        self._retained = self._clock.ticks()
        lost = apply_retention(
            self._context, self._rules.retention, datetime.fromtimestamp(self._clock.now() / 1_000_000, UTC)
        )
        if lost:
            logger.info("retention dropped %s quads", lost)

    def _write_checkpoint(self) -> None:
        version = self._context.lake.files().version
        if version - self._checkpoint >= self._rules.checkpoint_commits:
            self._checkpoint = checkpoint(self._context.table, self._rules.hours) or -1

    def _sweep(self) -> None:
        if self._clock.ticks() - self._swept < VACUUM_SECONDS:
            return
        self._swept = self._clock.ticks()
        self._progress = MaintenanceProgress("vacuum", 0, 0)
        vacuum(self._context.table, self._rules.hours)


class MaintenanceThread:
    """The thread that runs maintenance and erasures, and merges small chunks of the outbox."""

    def __init__(self, keeper: LakeMaintenance, eraser: Eraser, context: SparkContext) -> None:
        self._keeper = keeper
        self._eraser = eraser
        self._context = context
        self._stop = Flag()
        self._thread = Thread(target=self._run, name=MAINTENANCE_POOL, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the current work. What was not committed is repeated another time."""
        self._stop.set()
        self._context.cancelJobGroup(MAINTENANCE_POOL)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        self._context.setLocalProperty("spark.scheduler.pool", MAINTENANCE_POOL)
        self._context.setJobGroup(MAINTENANCE_POOL, "maintains the lake", interruptOnCancel=True)
        outbox, head = self._eraser.stores.outbox, 0
        while not self._stop.wait(MAINTENANCE_SECONDS):
            try:
                self._eraser.advance()
                # Chunks that are new since the last time are left: clients that listen are about to read them.
                outbox.merge(head)
                head = outbox.head()
                self._keeper.run_due()
            except Exception:
                if not self._stop.is_set():
                    logger.exception("maintenance failed and is tried again")
                    self._stop.wait(MAINTENANCE_PAUSE_SECONDS)
