"""Commits of any process wake the receivers, and no receiver holds a committer up."""

from __future__ import annotations

import os
from pathlib import Path

from triplewire.model.clock import ManualClock
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.signals import SignalReceiver, SignalSender, signal_folder
from triplewire.testing import publication


def test_a_commit_wakes_every_receiver_once(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "log.db", ManualClock())
    receivers = [SignalReceiver(signal_folder(tmp_path / "log.db")) for _ in range(2)]
    log.append([publication(1)])
    log.append([publication(2)])
    assert [each.wait(0) for each in receivers] == [True, True]
    assert [each.wait(0) for each in receivers] == [False, False]
    for each in receivers:
        each.close()


def test_without_receivers_nothing_is_made(tmp_path: Path) -> None:
    SignalSender(tmp_path / "signals").send()
    assert not (tmp_path / "signals").exists()


def test_a_receiver_that_does_not_read_holds_nobody_up(tmp_path: Path) -> None:
    receiver = SignalReceiver(tmp_path)
    sender = SignalSender(tmp_path)
    for _ in range(100_000):
        sender.send()
    assert receiver.wait(0)
    receiver.close()


def test_the_pipe_of_a_process_that_died_is_removed(tmp_path: Path) -> None:
    receiver = SignalReceiver(tmp_path)
    os.close(receiver.fileno())
    (pipe,) = tmp_path.iterdir()
    SignalSender(tmp_path).send()
    assert not pipe.exists()


def test_a_path_may_be_longer_than_that_of_a_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    receiver = SignalReceiver(folder)
    SignalSender(folder).send()
    assert receiver.wait(0)
    receiver.close()
    assert not [*folder.iterdir()]
