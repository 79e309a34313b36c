"""Retention: events go whole, by age, stream and size, and in one commit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from triplewire.model.errors import BadRequest
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.maintenance import MaintenanceContext, compact
from triplewire.storage.lake.ports import CommitBatch
from triplewire.storage.lake.retention import LakeRetention, apply_retention
from triplewire.storage.lake.zones import ZoneLayoutStore
from triplewire.storage.log.appending import entries_table
from triplewire.testing import event

NOW = datetime(2026, 11, 16, tzinfo=UTC)
HOUR = 3_600_000_000


@pytest.fixture
def context(tmp_path: Path) -> MaintenanceContext:
    """Ten events, one an hour, the last an hour ago, in turn of the streams a and b; compacted but for the last two."""
    lake, writer = DeltaLake(tmp_path / "quads"), FileWriter(tmp_path / "quads")
    made = MaintenanceContext(lake, tmp_path / "quads", ZoneLayoutStore(tmp_path / "zones"), file_quads=8)
    now = int(NOW.timestamp() * 1_000_000)
    for batch, positions in enumerate((range(1, 5), range(5, 9), range(9, 11))):
        rows = [
            (at, "ab"[at % 2], f"urn:{at}", event(at).text, None, None, 0, now - (11 - at) * HOUR, "", None)
            for at in positions
        ]
        lake.commit(CommitBatch("q", batch, positions[-1]), [writer.write(entries_table([rows]))])
        if batch == 1:
            compact(made)
    return made


def left(context: MaintenanceContext) -> Counter[int]:
    """Quads of each position."""
    paths = list(context.lake.files().paths)
    if not paths:
        return Counter()
    query = "SELECT position, count(*) FROM read_parquet($files, hive_partitioning = false) GROUP BY ALL"
    return Counter(dict(duckdb.execute(query, {"files": paths}).fetchall()))


@pytest.mark.parametrize(
    ("ages", "kept"),
    [
        ([], range(1, 11)),
        (["5h"], range(6, 11)),
        (["12h"], range(1, 11)),
        (["a=2h"], [1, 3, 5, 7, 9, 10]),
        (["a=2h", "4h"], [7, 9, 10]),
        (["b=3h", "1w"], [2, 4, 6, 8, 9, 10]),
        (["c=1m"], range(1, 11)),
        (["1m"], []),
    ],
)
def test_what_is_too_old_goes_whole(context: MaintenanceContext, ages: list[str], kept: list[int]) -> None:
    before = context.lake.files()
    lost = apply_retention(context, LakeRetention.parsed(ages), NOW)
    assert left(context) == Counter(dict.fromkeys(kept, 2))
    assert lost == 2 * (10 - len(kept))
    after = context.lake.files()
    assert after.removals == (1 if lost else 0)
    assert after.version <= before.version + 1
    assert after.position == before.position
    assert apply_retention(context, LakeRetention.parsed(ages), NOW) == 0


@pytest.mark.parametrize(
    ("ages", "floors"),
    [
        ([], {}),
        (["5h"], {"a": 4, "b": 5, None: 5}),
        (["a=2h"], {"a": 8, None: 8}),
        (["a=2h", "4h"], {"a": 8, "b": 5, None: 8}),
        (["1m"], {"a": 10, "b": 9, None: 10}),
    ],
)
@pytest.mark.parametrize("most", [0, 2])
def test_it_is_noted_how_far_events_of_a_stream_went(
    context: MaintenanceContext, ages: list[str], floors: dict[str | None, int], most: int
) -> None:
    few = replace(context, lake=DeltaLake(context.table, retention_streams=most))
    apply_retention(few, LakeRetention.parsed(ages), NOW)
    for lake in (context.lake, DeltaLake(context.table)):
        assert isinstance(lake, DeltaLake)
        found = {each: lake.floor(each) for each in ("a", "b", None)}
        assert found == {each: floors.get(each if most else None, 0) for each in found}


def test_a_floor_stays_where_less_goes_later(context: MaintenanceContext) -> None:
    apply_retention(context, LakeRetention.parsed(["a=2h"]), NOW)
    apply_retention(context, LakeRetention.parsed(["5h"]), NOW)
    lake = DeltaLake(context.table)
    assert [lake.floor(each) for each in ("a", "b", "c", None)] == [8, 5, 0, 8]
    assert DeltaLake(context.table.with_name("none")).floor() == 0


def test_of_what_is_too_much_the_oldest_goes(context: MaintenanceContext) -> None:
    size = context.lake.files().size
    assert apply_retention(context, LakeRetention(size=size), NOW) == 0
    assert apply_retention(context, LakeRetention(size=size - 1), NOW) > 0
    positions = sorted(left(context))
    assert positions == list(range(positions[0], 11))
    assert set(left(context).values()) == {2}
    assert context.lake.files().size < size


def test_what_is_fresh_stays_fresh(context: MaintenanceContext) -> None:
    apply_retention(context, LakeRetention.parsed(["90m"]), NOW + timedelta(minutes=1))
    assert [(each.zone, each.rows) for each in context.lake.files().files] == [(None, 2)]


@pytest.mark.parametrize("text", ["", "5", "d", "0d", "5y", "a=b=5d", "a= 5d", "-5d"])
def test_what_is_no_age_is_named(text: str) -> None:
    with pytest.raises(BadRequest, match="no age to keep events for"):
        LakeRetention.parsed([text])


def test_the_shortest_age_counts() -> None:
    assert LakeRetention.parsed(["a=2h", "1d"]).shortest == 7_200
    assert LakeRetention.parsed([]).shortest is None
