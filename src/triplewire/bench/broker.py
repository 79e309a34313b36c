"""A whole broker for one benchmark: real processes, real sockets, a directory that is thrown away."""

from __future__ import annotations

import socket
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Flag
from typing import Any
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from triplewire.bench.machine import Usage, jvm_seconds, usage
from triplewire.config import Settings
from triplewire.service.supervisor import Supervisor


@dataclass(frozen=True)
class Broker:
    """The running broker, and how long it took to be ready."""

    up: Supervisor
    ready_seconds: float

    @property
    def settings(self) -> Settings:
        return self.up.settings

    def edge(self) -> Usage:
        return usage([child.pid or 0 for child in self.up.edges.children])

    def pipeline(self) -> Usage:
        return usage([self.up.pipeline.pid or 0])

    def edge_seconds(self) -> dict[str, float]:
        """CPU seconds of the edges by part, as they tell them themselves."""
        with urlopen(f"{self.settings.url}/metrics") as response:
            families = text_string_to_metric_families(response.read().decode())
        samples = (
            sample for family in families if family.name == "triplewire_cpu_seconds" for sample in family.samples
        )
        found: defaultdict[str, float] = defaultdict(float)
        for sample in samples:
            found[sample.labels["part"]] += sample.value
        return dict(found)

    def jvm_seconds(self) -> float:
        return jvm_seconds([self.up.pipeline.pid or 0])


@contextmanager
def broker(**given: Any) -> Iterator[Broker]:  # noqa: ANN401
    """Start one on a free port, with settings that are given, and wait until it is ready; stop it afterwards."""
    with tempfile.TemporaryDirectory(prefix="triplewire-bench-") as directory:
        up = Supervisor(Settings(data=Path(directory), port=free_port(), **given))
        began = time.perf_counter()
        up.start()
        try:
            up.wait_ready(Flag(), attempts=1)
            yield Broker(up, time.perf_counter() - began)
        finally:
            up.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
