"""Maintenance does what is due, when it is due, and nothing that fails ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.storage.lake.test_compaction import Grown
from triplewire.model.clock import ManualClock
from triplewire.spark.jobs.maintenance import RETAIN_SECONDS, VACUUM_SECONDS, LakeMaintenance, MaintenanceRules
from triplewire.storage.lake.balance import BalanceSettings
from triplewire.storage.lake.maintenance import hold_maintenance_lock
from triplewire.storage.lake.retention import LakeRetention


@pytest.fixture
def grown(tmp_path: Path) -> Grown:
    return Grown(tmp_path, file_quads=8)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


RULES = MaintenanceRules(balance=BalanceSettings(zones=2, smallest=8), fresh_files=3)


def keeper(grown: Grown, clock: ManualClock, rules: MaintenanceRules = RULES) -> LakeMaintenance:
    return LakeMaintenance(grown.context, rules, clock)


def test_it_waits_until_compaction_pays(grown: Grown, clock: ManualClock) -> None:
    kept = keeper(grown, clock)
    for _ in range(2):
        grown.append(4)
        kept.run_due()
    assert kept.state()["fresh"] == 2
    grown.append(4)
    kept.run_due()
    state = kept.state()
    assert (state["fresh"], state["quads"], state["moved"]) == (0, 24, 24)
    assert len(grown.context.zones(grown.lake.files()).zones) == 2


def test_retention_comes_every_hour(grown: Grown, clock: ManualClock) -> None:
    kept = keeper(grown, clock, MaintenanceRules(LakeRetention.parsed(["1h"]), fresh_files=3))
    grown.append(4)
    kept.run_due()
    assert kept.state()["quads"] == 8
    clock.advance(RETAIN_SECONDS)
    kept.run_due()
    assert kept.state()["quads"] == 0


def test_a_checkpoint_is_written_when_there_were_many_commits(grown: Grown, clock: ManualClock) -> None:
    kept = keeper(grown, clock, replace(RULES, checkpoint_commits=2))
    grown.append(1)
    grown.append(1)
    kept.run_due()
    assert (grown.context.table / "_delta_log" / "_last_checkpoint").exists()


def test_what_nobody_reads_goes(grown: Grown, clock: ManualClock) -> None:
    kept = keeper(grown, clock, MaintenanceRules(hours=0, fresh_files=3))
    for _ in range(3):
        grown.append(4)
    kept.run_due()
    clock.advance(VACUUM_SECONDS)
    kept.run_due()
    there = {str(path.relative_to(grown.context.table)) for path in grown.context.table.rglob("quads-*.parquet")}
    assert there == {each.path for each in grown.lake.files().files}


def test_while_another_keeps_house_it_waits(grown: Grown, clock: ManualClock) -> None:
    kept = keeper(grown, clock)
    for _ in range(3):
        grown.append(4)
    with hold_maintenance_lock(grown.context.table):
        kept.run_due()
    assert kept.state()["fresh"] == 3
    kept.run_due()
    assert kept.state()["fresh"] == 0


def test_what_fails_is_told_and_tried_again(grown: Grown, clock: ManualClock) -> None:
    broken = [True]

    def run(function: Callable[[Any], Iterable[Any]], items: Sequence[Any]) -> list[Any]:
        if broken:
            raise OSError("no space left on device")
        return [made for item in items for made in function(item)]

    grown.context = replace(grown.context, run=run)
    kept = keeper(grown, clock)
    for _ in range(3):
        grown.append(4)
    with pytest.raises(OSError, match="no space left"):
        kept.run_due()
    assert kept.state()["error"] == "no space left on device"
    assert grown.rows().total() == 24
    broken.clear()
    kept.run_due()
    assert "error" not in kept.state()
    assert kept.state()["fresh"] == 0


def test_progress_can_be_seen(grown: Grown, clock: ManualClock) -> None:
    seen: list[Any] = []

    def run(function: Callable[[Any], Iterable[Any]], items: Sequence[Any]) -> list[Any]:
        seen.append(kept.state())
        return [made for item in items for made in function(item)]

    grown.context = replace(grown.context, run=run)
    kept = keeper(grown, clock)
    for _ in range(3):
        grown.append(4)
    kept.run_due()
    assert (seen[0]["work"], seen[0]["done"], seen[0]["of"]) == ("sorting into zones", 0, 24)
    assert "work" not in kept.state()
