"""Generations of what is kept: one is at hand, and the others go."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplewire.continuous.state import StateGenerations

RUN, OTHER = "5f0c8a5e-8d0b-4f5c-9a77-123456789012", "5f0c8a5e-8d0b-4f5c-9a77-123456789013"


@pytest.fixture
def kept(tmp_path: Path) -> StateGenerations:
    return StateGenerations(tmp_path / "state")


def fill(path: Path, *names: str) -> None:
    for name in names:
        (path / name).mkdir(parents=True)
        (path / name / "1.arrow").touch()


def test_the_one_before_is_the_newest_that_is_older(kept: StateGenerations) -> None:
    assert (kept.previous(RUN, 9), kept.oldest()) == (None, None)
    for made in (0, 5, 9, 40):
        fill(kept.directory(RUN, made), "0")
    fill(kept.directory(OTHER, 7), "0")
    assert kept.previous(RUN, 9) == kept.directory(RUN, 5)
    assert kept.previous(RUN, 5) == kept.directory(RUN, 0)
    assert kept.previous(RUN, 0) is None
    assert kept.oldest() == 0


def test_all_others_go_but_what_was_told(kept: StateGenerations) -> None:
    fill(kept.directory(RUN, 0), "0", "windows-1", "distinct")
    fill(kept.directory(RUN, 5), "0")
    fill(kept.directory(RUN, 9), "0", "1")
    fill(kept.directory(OTHER, 0), "0", "distinct")
    kept.drop_others(RUN, 9)
    found = sorted(str(each.relative_to(kept.path)) for each in kept.path.rglob("*.arrow"))
    assert found == [f"{RUN}/distinct/1.arrow", f"{RUN}@9/0/1.arrow", f"{RUN}@9/1/1.arrow"]
    assert kept.oldest() == 9
    assert kept.distinct(RUN) == kept.directory(RUN, 0) / "distinct"


def test_stations_begin_with_nothing_and_windows_with_what_they_have(kept: StateGenerations) -> None:
    fill(kept.directory(RUN, 5), "0", "11", "windows-0")
    kept.clear_joins(RUN, 5)
    assert [each.name for each in kept.directory(RUN, 5).iterdir()] == ["windows-0"]
    kept.clear_joins(RUN, 6)


def test_nothing_is_left_of_what_is_cleared(kept: StateGenerations) -> None:
    fill(kept.directory(RUN, 5), "0")
    kept.clear()
    kept.clear()
    assert kept.oldest() is None
