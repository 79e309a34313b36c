"""Children: started again with growing pauses, stopped in order. The children here are real, and end at once."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from bench.processes import free_port
from triplewire.config import Settings
from triplewire.config.settings import to_environment
from triplewire.model.clock import ManualClock
from triplewire.model.errors import Unavailable
from triplewire.service.processes import RESTART_PAUSE_SECONDS, ChildProcess, stop_all
from triplewire.service.supervisor import Supervisor


def ended(child: ChildProcess) -> None:
    child.start()
    child.wait()


def test_settings_survive_the_way_to_a_child(tmp_path: Path) -> None:
    settings = Settings(
        data=tmp_path, host="0.0.0.0", port=99, store_interval=2.5, supervisor=7, services=("http://a", "http://b")
    )
    assert Settings.from_environment(to_environment(settings)) == settings


def test_what_ends_by_itself_is_started_again_after_a_growing_pause(tmp_path: Path) -> None:
    clock = ManualClock()
    child = ChildProcess("no-such-command", Settings(data=tmp_path), clock)
    ended(child)
    for failure, pause in enumerate((1.0, 2.0, 4.0), 1):
        assert not child.watch()
        assert child.failures == failure
        clock.advance(pause - 0.01)
        assert not child.watch()
        clock.advance(0.02)
        assert child.watch()
        child.wait()
    assert "no-such-command" in child.read_tail(20)


def test_the_pause_has_a_limit(tmp_path: Path) -> None:
    clock = ManualClock()
    child = ChildProcess("no-such-command", Settings(data=tmp_path), clock, failures=20)
    ended(child)
    assert not child.watch()
    clock.advance(RESTART_PAUSE_SECONDS)
    assert child.watch()
    stop_all([child])
    assert child.pid is None


def test_an_address_that_is_taken_is_told_before_anything_starts(tmp_path: Path) -> None:
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        up = Supervisor(replace(Settings(), data=tmp_path, port=port))
        with pytest.raises(Unavailable, match=f"127.0.0.1:{port} cannot be used"):
            up.start()
    assert up.edges.children == []
