"""Processes report their status through one small file each: heartbeats for liveness, edge status for load and
figures.

A file is replaced at once, so that a reader sees the old or the new one, never half.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import orjson

from triplewire.config.files import replace_file
from triplewire.config.traffic import StreamTraffic
from triplewire.model.clock import Clock

STATUS_SECONDS = 1.0
"""Time between two status reports of an edge."""

STATUS_STALE_SECONDS = 5.0
"""Age from which on a status is that of an edge that is gone or stuck."""


EdgeState = Literal["starting", "ready", "closing"]


@dataclass(frozen=True)
class EdgeStatus:
    """The status of one edge. `state` is `starting`, `ready`, or `closing` once it accepts nobody. Times are
    microseconds."""

    name: str
    pid: int = 0
    address: str = ""
    """The address that it listens on; those that have the same share their connections."""
    state: EdgeState = "starting"
    since: int = 0
    at: int = 0
    cpu: float = 0.0
    """Seconds since it began."""
    memory: int = 0
    """Bytes that it holds."""
    listeners: Mapping[str, int] = field(default_factory=dict)
    max_listeners: int = 0
    """Clients that it accepts."""
    published: int = 0
    """Events that it acknowledged since it began."""
    streams: Sequence[StreamTraffic] = ()
    metrics: str = ""
    """The metrics of this edge alone."""

    @property
    def connected(self) -> int:
        return sum(self.listeners.values())

    def document(self) -> dict[str, Any]:
        """For clients: without the text of the metrics."""
        return {name: value for name, value in asdict(self).items() if name != "metrics"}


def write_status(folder: Path, status: EdgeStatus) -> None:
    """Replace the file at once, so that a reader sees the old or the new, never half."""
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / f"{status.name}.json", orjson.dumps(asdict(status)), durable=False)


def read_statuses(folder: Path, clock: Clock) -> list[EdgeStatus]:
    """The status of all running edges, by name. Files of edges that are gone are ignored."""
    oldest = clock.now() - int(STATUS_STALE_SECONDS * 1_000_000)
    found = (_read_status(path) for path in folder.glob("*.json"))
    return sorted((each for each in found if each and each.at >= oldest), key=status_order)


def status_order(status: EdgeStatus) -> tuple[int, str]:
    """Return the key by which edges are sorted: 2 comes before 10."""
    return len(status.name), status.name


def remove_status(folder: Path, name: str) -> None:
    """Remove the status of an edge that is gone. Another edge with its name writes one within a second."""
    (folder / f"{name}.json").unlink(missing_ok=True)


def parse_status(document: Mapping[str, Any]) -> EdgeStatus:
    """Return a status from its JSON. Raises KeyError, TypeError or ValueError."""
    known = {each.name for each in fields(EdgeStatus)}
    given = {name: value for name, value in document.items() if name in known}
    return EdgeStatus(**{**given, "streams": tuple(StreamTraffic(**each) for each in document["streams"])})


def _read_status(path: Path) -> EdgeStatus | None:
    try:
        return parse_status(orjson.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


HEARTBEAT_SECONDS = 2.0
"""How often a process that is ready says so."""

HEARTBEAT_STALE_SECONDS = 15.0
"""Older than this, a heartbeat means that its process is gone or stuck."""


@dataclass(frozen=True)
class Heartbeat:
    """The last heartbeat of a process. `state` is `starting`, `ready`, `failed`, `stopped`, or `unknown` if there is
    none."""

    state: str = "unknown"
    at: int = 0
    pid: int = 0
    detail: Mapping[str, Any] = field(default_factory=dict)

    def alive(self, clock: Clock) -> bool:
        return self.state in ("starting", "ready") and clock.now() - self.at < HEARTBEAT_STALE_SECONDS * 1_000_000


def write_heartbeat(path: Path, clock: Clock, state: str, detail: Mapping[str, Any] | None = None) -> None:
    """Replace the file at once, so that a reader sees the old or the new, never half."""
    heartbeat = {"state": state, "at": clock.now(), "pid": os.getpid(), "detail": dict(detail or {})}
    replace_file(path, json.dumps(heartbeat).encode(), durable=False)


def read_heartbeat(path: Path) -> Heartbeat:
    """The last heartbeat, or one in state `unknown` if there is none that can be read."""
    try:
        found = json.loads(path.read_text())
        return Heartbeat(found["state"], found["at"], found["pid"], found["detail"])
    except (OSError, ValueError, KeyError):
        return Heartbeat()
