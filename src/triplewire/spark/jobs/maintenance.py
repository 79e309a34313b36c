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
from triplewire.http.server import FAREWELL_SECONDS
from triplewire.model import Erasure
from triplewire.model.clock import Clock
from triplewire.model.errors import Conflict, TriplewireError
from triplewire.spark.jobs.ports import ErasableStores
from triplewire.storage.lake.balance import BalanceSettings
from triplewire.storage.lake.erasure import LakeErasure
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

HOUSE_SECONDS: Final = 2.0
"""Between two looks of the housekeeper at the lake: as often as it grows by a few files."""

HOUSE_PAUSE_SECONDS: Final = 30.0
"""What the housekeeper waits when something failed, as with a full disk, before it tries again."""

RETAIN_SECONDS: Final = 3_600.0
"""Between two looks at what is too old, at least: each that finds something begins every reader's copy anew."""

CHECKPOINT_COMMITS: Final = 100
"""Commits of the lake after which its state is written down: who opens it reads so many at most, in some 20 ms."""

VACUUM_SECONDS: Final = 3_600.0
"""Between two times that what nobody reads goes from the disk."""

LEFTOVER_SECONDS: Final = 600.0
"""From when on a data file of the lake without an end, that nobody has written to, counts as left behind by a crash. A
task writes its file within seconds."""


logger = logging.getLogger(__name__)

_MICRO = 1_000_000


@dataclass(frozen=True)
class ErasureWork:
    """One erasure, and what is known of it."""

    erasure: Erasure
    lake: LakeErasure
    losses: pa.Table


@dataclass
class Eraser:
    """One for each lake. It does in turn what was asked for, and nothing twice that was written down as done."""

    stores: ErasableStores
    house: MaintenanceContext
    clock: Clock
    memory: float
    """Seconds for which those who answer queries may still hold what the lake has no more."""
    began: int = 0
    """When this process did, before any query: what was being written before that is written by nobody."""
    _torn: dict[str, set[Path]] = field(default_factory=dict)

    def advance(self) -> int:
        """Do what can be done now; how many erasures still go on. What fails is done again the next time."""
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
            with hold_maintenance_lock(self.house.table):
                receipt = self._take_out(erasure_from_change(change), receipt)
        if "history" in receipt.steps and self._is_forgotten(receipt):
            self._finish(change, receipt)

    def _passed(self, position: int) -> bool:
        """Whether all that was read before a position is written. What is read later has nothing of it."""
        stores = self.stores
        heads = [stores.outbox.head(), self.house.lake.files().upto]
        if stores.registry.list(LANE, limit=1):
            heads.append(stores.outbox.head(OutboxLane.SLOW))
        if stores.registry.list(QUERY, limit=1):
            heads.append(stores.outbox.head(OutboxLane.CONTINUOUS))
        return min(heads) >= position

    def _take_out(self, erasure: Erasure, receipt: ErasureReceipt) -> ErasureReceipt:
        """The steps that keep house. One that must wait gives None; then no other is taken."""
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
        """What goes is written down before any of it does, so that whoever goes on knows all of it."""
        lake = LakeErasure(self.house, erasure)
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
        """Continuous queries make what they keep anew, from a log and a lake that have nothing of it."""
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
        # Since matches went they may have answered once more with what they had.
        stores.outbox.erase(work.losses["position"].to_pylist())
        return receipt

    def _history(self, work: ErasureWork, receipt: ErasureReceipt) -> ErasureReceipt | None:
        """What older versions name was rewritten with the rest; left is what the table's log says, and what crashes
        left behind."""
        named = {*self.house.lake.files().paths}
        torn = {path for path in work.lake.torn() if str(path) not in named and not self._dropped(path, receipt)}
        waiting = self._torn.setdefault(receipt.id, torn) & torn
        if waiting:
            return None
        if self._torn.pop(receipt.id):
            work.lake.rewrite()
        return receipt.counted(entries=work.lake.revise())

    def _dropped(self, path: Path, receipt: ErasureReceipt) -> bool:
        """Delete a file without an end if nobody writes it any more."""
        # What is written now was read after everything that was asked for before it was passed.
        oldest = max(receipt.requested, self.began, self.clock.now() - LEFTOVER_SECONDS * _MICRO)
        if path.stat().st_mtime * _MICRO >= oldest:
            return False
        path.unlink()
        return True

    def _is_forgotten(self, receipt: ErasureReceipt) -> bool:
        return self.clock.now() >= receipt.steps["lake"] + self.memory * _MICRO

    def _finish(self, change: RegistryChange, receipt: ErasureReceipt) -> None:
        """The name goes last: with it goes the knowledge of what there is to do."""
        now = self.clock.now()
        if change.value:
            LakeErasure(self.house, erasure_from_change(change)).forget()
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
    """What events lose, wherever they are: the lake may have let go of what the log has, and the other way round."""
    missing = log.filter(pc.invert(pc.is_in(log["position"], lake["position"].combine_chunks())))
    return pa.concat_tables([lake, missing]).sort_by("position")


MAINTENANCE_POOL = "housekeeping"


@dataclass(frozen=True)
class MaintenanceRules:
    """By which a lake is kept: for how long, how even, and for how many hours older versions can be read."""

    retention: LakeRetention = field(default_factory=LakeRetention)
    balance: BalanceSettings = field(default_factory=BalanceSettings)
    hours: int = TIME_TRAVEL_HOURS


class LakeMaintenance:
    """Does what is due, one piece of work at a time. Whatever fails is tried again later: nothing depends on it."""

    def __init__(self, house: MaintenanceContext, rules: MaintenanceRules, clock: Clock) -> None:
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
        interval = max(RETAIN_SECONDS, (shortest or 0.0) / 24)
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
        if version - self._checkpoint >= CHECKPOINT_COMMITS:
            self._checkpoint = checkpoint(self._house.table, self._rules.hours) or -1

    def _sweep(self) -> None:
        if self._clock.ticks() - self._swept < VACUUM_SECONDS:
            return
        self._swept = self._clock.ticks()
        self._progress = MaintenanceProgress("deleting what nobody reads", 0, 0)
        vacuum(self._house.table, self._rules.hours)


class MaintenanceThread:
    """A housekeeper and an eraser at work, in a thread of their own."""

    def __init__(self, keeper: LakeMaintenance, eraser: Eraser, context: SparkContext) -> None:
        self._keeper = keeper
        self._eraser = eraser
        self._context = context
        self._stop = Flag()
        self._thread = Thread(target=self._run, name=MAINTENANCE_POOL, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End what is being done. It is begun again another time; what was not committed was not done."""
        self._stop.set()
        self._context.cancelJobGroup(MAINTENANCE_POOL)
        self._thread.join(FAREWELL_SECONDS)

    def _run(self) -> None:
        self._context.setLocalProperty("spark.scheduler.pool", MAINTENANCE_POOL)
        self._context.setJobGroup(MAINTENANCE_POOL, "looks after the lake", interruptOnCancel=True)
        while not self._stop.wait(HOUSE_SECONDS):
            try:
                self._eraser.advance()
                self._keeper.turn()
            except Exception:
                if not self._stop.is_set():
                    logger.exception("housekeeping failed; it is tried again")
                    self._stop.wait(HOUSE_PAUSE_SECONDS)
