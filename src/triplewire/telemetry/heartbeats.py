"""Heartbeats: how a process tells others that it lives and what state it is in, through one small file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triplewire.clock import Clock
from triplewire.config.files import replace_file

BEAT_SECONDS = 2.0
"""How often a process that is ready says so."""

STALE_SECONDS = 15.0
"""Older than this, a heartbeat means that its process is gone or stuck."""


@dataclass(frozen=True)
class Heartbeat:
    """What a process said last. `state` is `starting`, `ready`, `failed`, `stopped`, or `unknown` where none was."""

    state: str = "unknown"
    at: int = 0
    pid: int = 0
    detail: Mapping[str, Any] = field(default_factory=dict)

    def alive(self, clock: Clock) -> bool:
        return self.state in ("starting", "ready") and clock.now() - self.at < STALE_SECONDS * 1_000_000


def beat(path: Path, clock: Clock, state: str, detail: Mapping[str, Any] | None = None) -> None:
    """Replace the file at once, so that a reader sees the old or the new, never half."""
    said = {"state": state, "at": clock.now(), "pid": os.getpid(), "detail": dict(detail or {})}
    replace_file(path, json.dumps(said).encode(), durable=False)


def last(path: Path) -> Heartbeat:
    """The last heartbeat, or one in state `unknown` if there is none that can be read."""
    try:
        found = json.loads(path.read_text())
        return Heartbeat(found["state"], found["at"], found["pid"], found["detail"])
    except (OSError, ValueError, KeyError):
        return Heartbeat()
