"""A heartbeat says what a process said last, and nothing once it is too old."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from triplewire.config.status import HEARTBEAT_STALE_SECONDS, Heartbeat, read_heartbeat, write_heartbeat
from triplewire.model.clock import ManualClock


def test_what_was_said_last_is_read(tmp_path: Path) -> None:
    clock = ManualClock()
    write_heartbeat(tmp_path / "deep" / "p.json", clock, "starting")
    clock.advance(1)
    write_heartbeat(tmp_path / "deep" / "p.json", clock, "ready", {"lag": 3})
    assert read_heartbeat(tmp_path / "deep" / "p.json") == Heartbeat("ready", clock.now(), os.getpid(), {"lag": 3})
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["p.json"]


@pytest.mark.parametrize("text", [None, "", "{", "{}", '{"state": "ready"}'])
def test_without_a_readable_file_the_state_is_unknown(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "p.json"
    if text is not None:
        path.write_text(text)
    assert read_heartbeat(path) == Heartbeat(state="unknown")
    assert not read_heartbeat(path).alive(ManualClock())


@pytest.mark.parametrize(
    ("state", "alive"), [("starting", True), ("ready", True), ("failed", False), ("stopped", False)]
)
def test_only_a_process_that_starts_or_is_ready_is_alive(tmp_path: Path, state: str, alive: bool) -> None:
    clock = ManualClock()
    write_heartbeat(tmp_path / "p.json", clock, state)
    assert read_heartbeat(tmp_path / "p.json").alive(clock) is alive


def test_an_old_heartbeat_is_that_of_a_process_that_is_gone(tmp_path: Path) -> None:
    clock = ManualClock()
    write_heartbeat(tmp_path / "p.json", clock, "ready")
    clock.advance(HEARTBEAT_STALE_SECONDS - 0.001)
    assert read_heartbeat(tmp_path / "p.json").alive(clock)
    clock.advance(0.001)
    assert not read_heartbeat(tmp_path / "p.json").alive(clock)
