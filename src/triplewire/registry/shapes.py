"""Shapes as registry entries: those of a stream, from a position on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from triplewire.errors import NotFound
from triplewire.registry.ports import Change, Registry

SHAPES = "shapes"
VERSION = "shapes-version"
"""The kind of one entry that is put with every change: its position tells whether any has changed."""
NEWEST = "newest"


class Mode(StrEnum):
    """What becomes of an event that does not conform."""

    REFUSE = "refuse"
    MARK = "mark"


@dataclass(frozen=True)
class Shaped:
    """The shapes of a stream. `text` has a line `subject⇥predicate⇥object` for each triple; `version` is the position
    at which they were put."""

    stream: str
    mode: Mode
    text: str
    version: int = 0

    @property
    def key(self) -> str:
        return f"{self.stream}@{self.version}"


def mode_of(registry: Registry, stream: str) -> Mode | None:
    """What becomes in a stream of events that do not conform; None where it has no shapes."""
    change = registry.get(SHAPES, stream)
    return None if change is None else _from_change(change).mode


class Shapes:
    """What the registry holds, kept at hand. What is put here is known here at once; what others put, after `refresh`.
    Any thread may ask; all but `of` wait for the disk."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._newest = 0
        self._known: Mapping[str, Shaped] = {}

    def of(self, stream: str) -> Shaped | None:
        return self._known.get(stream)

    def __bool__(self) -> bool:
        """Whether any stream has some."""
        return bool(self._known)

    def refresh(self) -> None:
        change = self._registry.get(VERSION, NEWEST)
        if change is not None and change.position != self._newest:
            self._known = {each.key: _from_change(each) for each in self._registry.list(SHAPES)}
            self._newest = change.position

    def put(self, stream: str, mode: Mode, text: str) -> Shaped:
        """In place of those that the stream had."""
        self._put(stream, {"mode": mode.value, "text": text})
        return self.find(stream)

    def find(self, stream: str) -> Shaped:
        """Raises NotFound for a stream that has none."""
        change = self._registry.get(SHAPES, stream)
        if change is None:
            raise NotFound(f"the stream {stream} has no shapes")
        return _from_change(change)

    def remove(self, stream: str) -> None:
        """Raises NotFound for a stream that has none."""
        self.find(stream)
        self._put(stream, None)

    def _put(self, stream: str, value: Mapping[str, Any] | None) -> None:
        self._registry.put([(SHAPES, stream, value), (VERSION, NEWEST, {})])
        self.refresh()


def _from_change(change: Change) -> Shaped:
    assert change.value is not None, "a list has only what is there"
    return Shaped(change.key, Mode(change.value["mode"]), change.value["text"], change.position)
