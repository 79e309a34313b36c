"""A whole broker for the tests that need one, started once."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event as Flag

import pytest

from bench.processes import free_port
from tests.config.collectors import Collector, collecting
from triplewire.config import Settings
from triplewire.service.supervisor import Supervisor


@pytest.fixture(scope="session")
def collector() -> Iterator[Collector]:
    """Hears of the traces that publishers ask for, and of no others."""
    with collecting() as found:
        yield found


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Supervisor]:
    """Edge and pipeline, ready."""
    data = tmp_path_factory.mktemp("broker")
    up = Supervisor(Settings(data=data, port=free_port(), traces=collector.url, trace_ratio=0.0, log_format="json"))
    up.start()
    try:
        up.wait_ready(Flag(), attempts=1)
        yield up
    finally:
        up.stop()
