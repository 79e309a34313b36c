"""A whole broker for the tests that need one, started once."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event as Flag

import pytest

from triplewire.bench.broker import free_port
from triplewire.compose.up import Up
from triplewire.config import Settings


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Edge and pipeline, ready."""
    up = Up(Settings(data=tmp_path_factory.mktemp("broker"), port=free_port()))
    up.start()
    try:
        up.wait_ready(Flag(), attempts=1)
        yield up
    finally:
        up.stop()
