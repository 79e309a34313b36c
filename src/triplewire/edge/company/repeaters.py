"""Repeaters: the edges that have streams of this one, as their relays tell. Who listens here may as well listen
there.

Edges over one directory share what they were told: relays reach one of them by chance.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from triplewire.config import limits
from triplewire.model.clock import Clock

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Repeater:
    """What a relay says of the edge that it publishes to. It is believed for a while, then it must be said again."""

    id: str
    """Of the relay."""
    streams: Mapping[str, str]
    """Of each stream that is mirrored whole, its name here and its address there."""
    load: float = 0.0
    """How busy the edge there is: 0 is idle, 1 cannot be more."""
    free: int = 1
    """How many more may listen there."""
    at: int = 0
    """When it was said, in microseconds."""


class Repeaters:
    """Those that are there. With a folder, each is a file in it, which is replaced at once."""

    def __init__(self, clock: Clock, folder: Path | None = None) -> None:
        self._clock = clock
        self._folder = folder
        self._told: dict[str, Repeater] = {}
        self._sent: dict[str, int] = {}
        self._looked = float("-inf")

    def tell(self, repeater: Repeater) -> None:
        """In place of what the same relay said before. More relays than a limit are not listened to."""
        fresh = {each.id: each for each in self.all()}
        if repeater.id in fresh or len(fresh) < limits.REPEATERS:
            self._told = fresh | {repeater.id: repeater}
            self._sent.pop(repeater.id, None)
            if self._folder is not None:
                _write(self._folder, repeater)

    def withdraw(self, id: str) -> None:
        self._told.pop(id, None)
        if self._folder is not None:
            _path(self._folder, id).unlink(missing_ok=True)

    def all(self) -> list[Repeater]:
        """By id. What another edge of the directory was told is known within a second."""
        if self._folder is not None and self._clock.ticks() - self._looked >= limits.REPEATER_LOOK_SECONDS:
            self._looked = self._clock.ticks()
            self._told |= {each.id: each for each in _read(self._folder) if self._newer(each)}
        oldest = self._clock.now() - int(limits.REPEATER_SECONDS * 1_000_000)
        self._told = {id: each for id, each in self._told.items() if each.at >= oldest}
        return sorted(self._told.values(), key=lambda each: each.id)

    def of(self, stream: str) -> str | None:
        """The address of the stream at the repeater that has most room; None where none has any. Whoever asks is taken
        to send somebody there, until that repeater tells anew how busy it is."""
        best = self._best(stream)
        if best is None:
            return None
        self._sent[best.id] = self._sent.get(best.id, 0) + 1
        return best.streams[stream]

    def any(self, stream: str) -> str | None:
        """The same, for who only wants to know."""
        best = self._best(stream)
        return None if best is None else best.streams[stream]

    def _best(self, stream: str) -> Repeater | None:
        there = [each for each in self.all() if stream in each.streams and self._room(each)]
        return min(there, key=self._load, default=None)

    def _newer(self, repeater: Repeater) -> bool:
        known = self._told.get(repeater.id)
        return known is None or repeater.at > known.at

    def _room(self, repeater: Repeater) -> bool:
        return self._load(repeater) < limits.REPEATER_FULL and self._sent.get(repeater.id, 0) < repeater.free

    def _load(self, repeater: Repeater) -> float:
        return repeater.load + self._sent.get(repeater.id, 0) / max(repeater.free, 1)


def _path(folder: Path, id: str) -> Path:
    return folder / f"{id}.json"


def _write(folder: Path, repeater: Repeater) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scratch = folder / f"{repeater.id}.{os.getpid()}.tmp"
        scratch.write_bytes(orjson.dumps(asdict(repeater)))
        scratch.replace(_path(folder, repeater.id))
    except OSError:
        # This edge knows it; the others will hear of it when there is room on the disk.
        logger.warning("the repeater %s could not be told of to other edges", repeater.id, exc_info=True)


def _read(folder: Path) -> list[Repeater]:
    found = []
    for path in folder.glob("*.json"):
        try:
            found.append(Repeater(**orjson.loads(path.read_bytes())))
        except (OSError, ValueError, TypeError):
            # It went, or somebody else's file is there.
            continue
    return found
