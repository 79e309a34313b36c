"""What a relay knows of itself after it was ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from triplewire.model.clock import Backoff
from triplewire.model.errors import Conflict
from triplewire.network.route import PositionStore, RoutePosition


def test_a_record_is_read_back_by_another(tmp_path: Path) -> None:
    PositionStore(tmp_path / "p").intend("k", "a → b", RoutePosition("edge", "1", "2"))
    assert PositionStore(tmp_path / "p").load("k") == RoutePosition("edge", "1", "2")
    PositionStore(tmp_path / "p").settle("k", "a → b", RoutePosition("edge", "2"))
    assert PositionStore(tmp_path / "p").load("k") == RoutePosition("edge", "2", None)
    assert PositionStore(tmp_path / "p").load("other") is None


def test_a_power_failure_never_loses_both_the_intention_and_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name may point to synced content only: at each rename the new file is on the disk."""
    synced: set[int] = set()
    renamed: list[bool] = []
    fsync, rename = os.fsync, os.replace

    def record_fsync(handle: int) -> None:
        fsync(handle)
        synced.add(os.fstat(handle).st_ino)

    def record_rename(source: Path, target: Path) -> None:
        renamed.append(source.stat().st_ino in synced)
        rename(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_rename)
    store = PositionStore(tmp_path)
    store.intend("k", "a → b", RoutePosition("edge", "1", "2"))
    store.settle("k", "a → b", RoutePosition("edge", "2"))
    assert renamed == [True, True]


def test_a_record_only_goes_forward() -> None:
    assert RoutePosition("edge", "earliest").before("0" * 16)
    assert RoutePosition("edge", "2026-11-16T08:00:00Z").before("0" * 16)
    assert RoutePosition("edge", "0" * 15 + "1").before("0" * 15 + "a")
    assert not RoutePosition("edge", "0" * 15 + "a").before("0" * 15 + "a")
    assert not RoutePosition("edge", "0" * 15 + "b").before("0" * 15 + "a")


def test_a_relay_is_known_by_the_same_id(tmp_path: Path) -> None:
    assert PositionStore(tmp_path / "p").relay_id() == PositionStore(tmp_path / "p").relay_id()
    assert PositionStore(tmp_path / "p").relay_id() != PositionStore(tmp_path / "q").relay_id()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"route": ""}', '{"upstream": 1, "more": 2}'])
def test_a_file_that_is_no_record_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "k.json").write_text(text)
    with pytest.raises(Conflict, match="remove it to begin anew"):
        PositionStore(tmp_path).load("k")


def test_one_at_a_time(tmp_path: Path) -> None:
    with PositionStore(tmp_path).lock(), pytest.raises(Conflict, match="another relay"), PositionStore(tmp_path).lock():
        pass
    with PositionStore(tmp_path).lock():
        pass


def test_pauses_grow_up_to_the_longest_and_differ_by_chance() -> None:
    always, never = Backoff(1.0, 10.0, chance=lambda: 1.0), Backoff(1.0, 10.0, chance=lambda: 0.0)
    assert [always.seconds(failures) for failures in (1, 2, 3, 4, 5, 5_000)] == [1, 2, 4, 8, 10, 10]
    assert [never.seconds(failures) for failures in (1, 2, 5_000)] == [0.5, 1, 5]
