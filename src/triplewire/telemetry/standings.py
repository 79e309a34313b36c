"""Standings: how each edge process stands, told through one small file each, so that any of them can tell of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import orjson

from triplewire.clock import Clock
from triplewire.config.files import replace_file
from triplewire.telemetry.flows import Flow

STANDING_SECONDS = 1.0
"""Between two times that an edge tells how it stands."""

STALE_SECONDS = 5.0
"""Older than this, what was told is of an edge that is gone or stuck."""


@dataclass(frozen=True)
class Standing:
    """How one edge stands. `state` is `starting`, `ready`, or `closing` once it accepts nobody. Times are
    microseconds."""

    name: str
    pid: int = 0
    door: str = ""
    """The address that it listens on; those that have the same share their connections."""
    state: str = "starting"
    since: int = 0
    at: int = 0
    cpu: float = 0.0
    """Seconds since it began."""
    memory: int = 0
    """Bytes that it holds."""
    listeners: Mapping[str, int] = field(default_factory=dict)
    seats: int = 0
    """How many may listen."""
    published: int = 0
    """Events that it acknowledged since it began."""
    streams: Sequence[Flow] = ()
    metrics: str = ""
    """What a scrape of it alone would get."""

    @property
    def taken(self) -> int:
        return sum(self.listeners.values())

    def document(self) -> dict[str, Any]:
        """For clients: without the text of the metrics."""
        return {name: value for name, value in asdict(self).items() if name != "metrics"}


def tell(folder: Path, standing: Standing) -> None:
    """Replace the file at once, so that a reader sees the old or the new, never half."""
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / f"{standing.name}.json", orjson.dumps(asdict(standing)), durable=False)


def told(folder: Path, clock: Clock) -> list[Standing]:
    """Of all edges that are there, by name. Files of those that are gone are passed over."""
    oldest = clock.now() - int(STALE_SECONDS * 1_000_000)
    found = (_read(path) for path in folder.glob("*.json"))
    return sorted((each for each in found if each and each.at >= oldest), key=by_name)


def by_name(standing: Standing) -> tuple[int, str]:
    """The order in which edges are told of: 2 before 10."""
    return len(standing.name), standing.name


def withdraw(folder: Path, name: str) -> None:
    """The edge of that name is gone. If another has the name by now, it tells again within a second."""
    (folder / f"{name}.json").unlink(missing_ok=True)


def document_of(told: Mapping[str, Any]) -> Standing:
    """A standing from its JSON. Raises KeyError, TypeError or ValueError where it is none."""
    known = {each.name for each in fields(Standing)}
    given = {name: value for name, value in told.items() if name in known}
    return Standing(**{**given, "streams": tuple(Flow(**each) for each in told["streams"])})


def _read(path: Path) -> Standing | None:
    try:
        return document_of(orjson.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
