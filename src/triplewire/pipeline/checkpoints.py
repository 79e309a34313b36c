"""Checkpoints: what Spark wrote down about a streaming query, read back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Checkpoint:
    """The directory that Spark keeps for one query."""

    path: Path

    @property
    def id(self) -> str:
        """The query's identity, the same over restarts. Written before the first batch runs."""
        return str(json.loads((self.path / "metadata").read_text())["id"])

    def upto(self, batch: int) -> int:
        """The position at which a batch ends. Spark writes it down before it runs the batch."""
        return int(self._offset(batch)["position"])

    def time(self, batch: int) -> int:
        """The time of a batch, where offsets have one."""
        return int(self._offset(batch)["time"])

    def _offset(self, batch: int) -> dict[str, int]:
        *_, offset = (self.path / "offsets" / str(batch)).read_text().splitlines()
        found: dict[str, int] = json.loads(offset)
        return found
