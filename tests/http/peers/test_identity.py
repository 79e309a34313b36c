"""Who an edge is: the same after a restart, for all that share a directory, and told in every answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.http.harness import house, run
from triplewire.http.peers.status import load_identity


def test_a_directory_keeps_its_identity(tmp_path: Path) -> None:
    first = load_identity(tmp_path / "data" / "edge.id")
    assert load_identity(tmp_path / "data" / "edge.id") == first
    assert load_identity(tmp_path / "other" / "edge.id") != first
    assert [each.name for each in (tmp_path / "data").iterdir()] == ["edge.id"]


def test_those_who_ask_at_the_same_time_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(load_identity, [tmp_path / "edge.id"] * 64))) == 1


def test_answers_say_whose_they_are() -> None:
    async def scene() -> None:
        async with house() as at:
            async with at.session.get(f"{at.url}/health") as response:
                told = (await response.json())["edge"]
                assert response.headers["Edge-Id"] == told
            async with at.session.get(f"{at.url}/nothing") as response:
                assert (response.status, response.headers["Edge-Id"]) == (404, told)
            async with at.listen("/streams/test") as ear:
                assert ear.response.headers["Edge-Id"] == told

    run(scene())
