"""kill -9 in the middle of maintenance: readers never see a torn table, nothing is lost, and the work goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.storage.lake.faulty_maintainer import SPLIT, WORKS, maintained
from tests.storage.lake.test_compaction import Grown
from tests.storage.lake.test_rebalancing import misplaced
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.maintenance import compact, hold_maintenance_lock, vacuum
from triplewire.storage.lake.rebalancing import rebalance


@pytest.fixture
def grown(tmp_path: Path) -> Grown:
    """Half of it is in zones, half is fresh. Its events were received two seconds after 1970 began."""
    made = Grown(tmp_path, file_quads=16)
    made.append(40)
    compact(made.context)
    rebalance(made.context, SPLIT)
    made.append(16)
    made.append(16)
    return made


def killed(folder: Path, work: str, point: str) -> None:
    command = [sys.executable, "-m", "tests.storage.lake.faulty_maintainer", str(folder), work, point]
    done = subprocess.run(command, check=False, capture_output=True, timeout=120, env=dict(os.environ))
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def whole(grown: Grown) -> Counter[tuple[int, int, str]]:
    """What a reader finds that opens the table anew: each row once, and each in its zone."""
    snapshot = DeltaLake(grown.context.table).files()
    for file in snapshot.files:
        assert (grown.context.table / file.path).exists()
    return grown.rows(snapshot)


@pytest.mark.parametrize("point", ["file", "before", "after"])
@pytest.mark.parametrize("work", ["compaction", "merge", "retention"])
def test_killed_in_the_middle(grown: Grown, tmp_path: Path, work: str, point: str) -> None:
    rows = whole(grown)
    killed(tmp_path, work, point)
    found = whole(grown)
    assert found == (Counter() if (work, point) == ("retention", "after") else rows)
    WORKS[work](maintained(tmp_path))
    assert whole(grown) == (Counter() if work == "retention" else rows)
    compact(grown.context)
    assert misplaced(grown, grown.lake.files()) == 0


@pytest.mark.parametrize("point", ["file", "before", "after"])
def test_killed_in_the_middle_of_a_split(grown: Grown, tmp_path: Path, point: str) -> None:
    compact(grown.context)
    WORKS["merge"](maintained(tmp_path))
    rows = whole(grown)
    killed(tmp_path, "split", point)
    assert whole(grown) == rows
    assert misplaced(grown, DeltaLake(grown.context.table).files()) == 0
    WORKS["split"](maintained(tmp_path))
    assert whole(grown) == rows
    assert len(grown.context.zones(grown.lake.files()).zones) == 4


def test_a_vacuum_that_was_killed_goes_on(grown: Grown, tmp_path: Path) -> None:
    """As it stands when it is killed after some of its files: they are gone, its log does not say so."""
    rows = whole(grown)
    compact(grown.context)
    named = {each.path for each in grown.lake.files().files}
    (first, *rest) = sorted(
        str(path.relative_to(grown.context.table))
        for path in grown.context.table.rglob("quads-*.parquet")
        if str(path.relative_to(grown.context.table)) not in named
    )
    (grown.context.table / first).unlink()
    assert whole(grown) == rows
    assert set(vacuum(grown.context.table, 0)) >= set(rest)
    assert whole(grown) == rows


def test_what_a_killed_keeper_left_behind_goes(grown: Grown, tmp_path: Path) -> None:
    killed(tmp_path, "compaction", "before")
    vacuum(grown.context.table, 0)
    there = {str(path.relative_to(grown.context.table)) for path in grown.context.table.rglob("quads-*.parquet")}
    assert there == {each.path for each in grown.lake.files().files}


def test_a_lock_goes_with_its_process(grown: Grown, tmp_path: Path) -> None:
    killed(tmp_path, "compaction", "before")
    with hold_maintenance_lock(grown.context.table):
        compact(grown.context)
