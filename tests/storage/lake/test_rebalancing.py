"""Relocations: rows follow the map, the load becomes even, and what is asked for is found in the zones it touches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from tests.storage.lake.test_compaction import Grown
from triplewire.storage.lake.balance import BalanceSettings, LoadCriterion, ZoneLoad
from triplewire.storage.lake.keys import KEYED, row_points
from triplewire.storage.lake.maintenance import compact
from triplewire.storage.lake.ports import Snapshot, TableChange
from triplewire.storage.lake.rebalancing import is_balanced, measure_zones, rebalance
from triplewire.storage.lake.zones import ZoneLayout

EVEN = BalanceSettings(zones=4, smallest=8, criteria=(LoadCriterion("quads", 1.5, 0.5),))


@pytest.fixture
def grown(tmp_path: Path) -> Grown:
    made = Grown(tmp_path, file_quads=16)
    for _ in range(4):
        made.append(16)
    compact(made.context)
    return made


def misplaced(grown: Grown, snapshot: Snapshot) -> int:
    """Quads of files whose zone is not where the map has them."""
    zones, wrong = grown.context.zones(snapshot), 0
    for path, file in zip(snapshot.paths, snapshot.files, strict=True):
        rows = duckdb.read_parquet(path, hive_partitioning=False).select(*KEYED).to_arrow_table()
        wrong += sum(zones.locate(zones.placed(each)) != file.zone for each in row_points(rows))
    return wrong


def test_one_zone_becomes_as_many_as_are_wanted(grown: Grown) -> None:
    rows, before = grown.rows(), grown.lake.files()
    made = rebalance(grown.context, EVEN)
    after = grown.lake.files()
    assert len(made.after.zones) == 4
    assert grown.context.zones(after) == made.after
    assert misplaced(grown, after) == 0
    assert grown.rows() == rows
    assert all(each.quads >= 16 for each in measure_zones(after, {}).values())
    assert grown.rows(before) == rows
    assert grown.context.zones(before) == ZoneLayout()


def test_what_is_even_stays_as_it_is(grown: Grown) -> None:
    rebalance(grown.context, EVEN)
    version = grown.lake.files().version
    assert rebalance(grown.context, EVEN).steps == ()
    assert grown.lake.files().version == version


def test_what_is_fresh_goes_into_the_new_zones(grown: Grown) -> None:
    rebalance(grown.context, EVEN)
    grown.append(16)
    compact(grown.context)
    assert misplaced(grown, grown.lake.files()) == 0
    assert sum(grown.rows().values()) == 160


def test_zones_that_hold_too_little_become_one(grown: Grown) -> None:
    rebalance(grown.context, EVEN)
    rows = grown.rows()
    made = rebalance(
        grown.context, BalanceSettings(zones=1, smallest=1_000_000, criteria=(LoadCriterion("quads", 2, 0.9),))
    )
    assert len(made.after.zones) < 4
    assert misplaced(grown, grown.lake.files()) == 0
    assert grown.rows() == rows


def test_reads_can_be_what_counts(grown: Grown) -> None:
    settings = BalanceSettings(zones=2, smallest=8, criteria=(LoadCriterion("reads", 1.5, 0.0),))
    assert is_balanced(measure_zones(grown.lake.files(), {}), ZoneLayout(), settings)
    assert len(rebalance(grown.context, settings, {"z0": 100.0}).after.zones) == 2


def test_a_crash_before_the_commit_leaves_the_lake_as_it_was(grown: Grown) -> None:
    before, rows = grown.lake.files(), grown.rows()

    def crash(change: TableChange) -> None:
        raise KeyboardInterrupt

    grown.lake.replace = crash  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        rebalance(grown.context, EVEN)
    assert grown.lake.files() == before
    del grown.lake.replace
    rebalance(grown.context, EVEN)
    assert misplaced(grown, grown.lake.files()) == 0
    assert grown.rows() == rows


@pytest.mark.parametrize("order", ["reversed", "prefix"])
def test_another_order_of_terms_moves_everything(grown: Grown, order: str) -> None:
    rebalance(grown.context, EVEN)
    rows, old = grown.rows(), {each.id for each in grown.context.zones(grown.lake.files()).zones}
    assert rebalance(grown.context, replace(EVEN, transformation=order)).steps == ()
    made = rebalance(grown.context, replace(EVEN, transformation=order), reorder=True)
    after = grown.lake.files()
    assert grown.context.zones(after).order == order == made.after.order
    assert not old & {each.id for each in made.after.zones}
    assert misplaced(grown, after) == 0
    assert grown.rows() == rows
    assert rebalance(grown.context, replace(EVEN, transformation=order)).after.order == order


def test_a_zone_that_holds_nothing_counts() -> None:
    zones = ZoneLayout().split("z0", "predicate", "<m")
    low = BalanceSettings(zones=2, smallest=1, criteria=(LoadCriterion("quads", 1.5, 0.5),))
    assert not is_balanced({"z1": ZoneLoad(10)}, zones, low)
    assert is_balanced({"z1": ZoneLoad(10), "z2": ZoneLoad(10)}, zones, low)
