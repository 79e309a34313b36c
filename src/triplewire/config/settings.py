"""Settings: one frozen value that every process is started with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

PREFIX = "TRIPLEWIRE_"


@dataclass(frozen=True)
class Settings:
    """Where things lie and where the door is. Each field can be set as `TRIPLEWIRE_<FIELD>` in the environment."""

    data: Path = Path("triplewire-data")
    host: str = "127.0.0.1"
    port: int = 8080
    master: str = "local[2]"
    driver_memory: str = "640m"
    match_interval: float = 0.1
    """Seconds between two looks of the `match` query at an idle log."""
    store_interval: float = 1.0
    """Seconds between two looks of the `store` query; each batch becomes a commit of the lake."""

    @property
    def log(self) -> Path:
        return self.data / "log.db"

    @property
    def outbox(self) -> Path:
        return self.data / "outbox.db"

    @property
    def lake(self) -> Path:
        return self.data / "lake" / "quads"

    @property
    def checkpoints(self) -> Path:
        return self.data / "checkpoints"

    @property
    def heartbeat(self) -> Path:
        return self.data / "pipeline.json"

    @property
    def url(self) -> str:
        return f"http://{'localhost' if self.host == '127.0.0.1' else self.host}:{self.port}"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """The defaults, overridden by what the environment sets. Raises ValueError for a value of the wrong type."""
        given = {}
        for field in fields(cls):
            text = environment.get(PREFIX + field.name.upper())
            if text is not None:
                try:
                    given[field.name] = type(field.default)(text)
                except ValueError:
                    raise ValueError(
                        f"{PREFIX}{field.name.upper()}={text!r} is not a {type(field.default).__name__}"
                    ) from None
        return cls(**given)
