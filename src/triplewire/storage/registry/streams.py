"""Streams as registry entries: their names, their descriptions, and the SHACL shapes that hold from a position on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from triplewire.model.errors import NotFound
from triplewire.storage.registry.codec import EntryCodec, check_name
from triplewire.storage.registry.ports import Registry

DESCRIPTION_CHARACTERS: Final = 4_000
"""Length of a title, description or keyword of a stream: each is in every catalog."""

DESCRIPTION_KEYWORDS: Final = 100
"""Keywords of a stream."""

SHAPES = "shapes"
SHAPES_VERSION = "shapes-version"
"""The kind of one entry that is put with every change: its position tells whether any has changed."""
NEWEST_SHAPES = "newest"


class ValidationMode(StrEnum):
    """The treatment of an event that does not conform."""

    REFUSE = "refuse"
    MARK = "mark"


@dataclass(frozen=True)
class StreamShapes:
    """The shapes of a stream. `text` has a line `subject⇥predicate⇥object` for each triple; `version` is the position
    at which they were put."""

    stream: str
    mode: ValidationMode
    text: str
    version: int = 0

    @property
    def key(self) -> str:
        return f"{self.stream}@{self.version}"


_SHAPES = EntryCodec(StreamShapes, key="stream", position="version")


def read_validation_mode(registry: Registry, stream: str) -> ValidationMode | None:
    """The validation mode of a stream; None if it has no shapes."""
    change = registry.get(SHAPES, stream)
    return None if change is None else _SHAPES.from_change(change).mode


class ShapesCache:
    """A cache of the shapes in the registry. Changes of this process are visible at once, others after `refresh`. Any
    thread may call it; all methods but `of` read from the disk."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._newest = 0
        self._known: Mapping[str, StreamShapes] = {}
        self.refresh()

    def of(self, stream: str) -> StreamShapes | None:
        return self._known.get(stream)

    def __bool__(self) -> bool:
        """Whether any stream has shapes."""
        return bool(self._known)

    def refresh(self) -> None:
        change = self._registry.get(SHAPES_VERSION, NEWEST_SHAPES)
        if change is not None and change.position != self._newest:
            self._known = {each.key: _SHAPES.from_change(each) for each in self._registry.list(SHAPES)}
            self._newest = change.position

    def put(self, stream: str, mode: ValidationMode, text: str) -> StreamShapes:
        """Replace the shapes of a stream."""
        self._put(stream, {"mode": mode.value, "text": text})
        return self.find(stream)

    def find(self, stream: str) -> StreamShapes:
        """Raises NotFound for a stream that has none."""
        change = self._registry.get(SHAPES, stream)
        if change is None:
            raise NotFound(f"the stream {stream} has no shapes")
        return _SHAPES.from_change(change)

    def remove(self, stream: str) -> None:
        """Raises NotFound for a stream that has none."""
        self.find(stream)
        self._put(stream, None)

    def _put(self, stream: str, value: Mapping[str, Any] | None) -> None:
        self._registry.put([(SHAPES, stream, value), (SHAPES_VERSION, NEWEST_SHAPES, {})])
        self.refresh()


ABOUT = "about"


@dataclass(frozen=True)
class StreamDescription:
    """The description of a stream; all fields are optional."""

    title: str | None = None
    description: str | None = None
    licence: str | None = None
    """The IRI of the terms under which its events may be used."""
    keywords: tuple[str, ...] = ()
    version_of: str | None = None
    """The predicate by which an event, as subject, names that of which it is a version."""


NO_DESCRIPTION = StreamDescription()


def description_to_value(about: StreamDescription) -> Mapping[str, Any]:
    return {name: value for name, value in asdict(about).items() if value}


def read_description(registry: Registry, stream: str) -> StreamDescription:
    """The description of a stream."""
    change = registry.get(ABOUT, stream)
    return NO_DESCRIPTION if change is None else description_from_value(change.value or {})


def description_from_value(value: Mapping[str, Any]) -> StreamDescription:
    return StreamDescription(**{**value, "keywords": tuple(value.get("keywords", ()))})


def check_stream_name(text: str) -> str:
    """Return the name of a stream, or raise BadRequest as `check_name` does."""
    return check_name(text, "a stream")
