"""Streams as registry entries: their names, their descriptions, and the SHACL shapes that hold from a position on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from triplewire.model.errors import BadRequest, NotFound
from triplewire.model.events import STREAM_NAME
from triplewire.sparql.syntax.windows import STREAM_NAME_CHARACTERS
from triplewire.storage.registry.ports import Registry, RegistryChange

DESCRIPTION_CHARACTERS: Final = 4_000
"""Length of a title, description or keyword of a stream: each is in every catalog."""

DESCRIPTION_KEYWORDS: Final = 100
"""Keywords of a stream."""

SHAPES = "shapes"
SHAPES_VERSION = "shapes-version"
"""The kind of one entry that is put with every change: its position tells whether any has changed."""
NEWEST_SHAPES = "newest"


class ValidationMode(StrEnum):
    """What becomes of an event that does not conform."""

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


def read_validation_mode(registry: Registry, stream: str) -> ValidationMode | None:
    """What becomes in a stream of events that do not conform; None where it has no shapes."""
    change = registry.get(SHAPES, stream)
    return None if change is None else _shapes_from_change(change).mode


class ShapesCache:
    """What the registry holds, kept at hand. What is put here is known here at once; what others put, after `refresh`.
    Any thread may ask; all but `of` wait for the disk."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._newest = 0
        self._known: Mapping[str, StreamShapes] = {}

    def of(self, stream: str) -> StreamShapes | None:
        return self._known.get(stream)

    def __bool__(self) -> bool:
        """Whether any stream has some."""
        return bool(self._known)

    def refresh(self) -> None:
        change = self._registry.get(SHAPES_VERSION, NEWEST_SHAPES)
        if change is not None and change.position != self._newest:
            self._known = {each.key: _shapes_from_change(each) for each in self._registry.list(SHAPES)}
            self._newest = change.position

    def put(self, stream: str, mode: ValidationMode, text: str) -> StreamShapes:
        """In place of those that the stream had."""
        self._put(stream, {"mode": mode.value, "text": text})
        return self.find(stream)

    def find(self, stream: str) -> StreamShapes:
        """Raises NotFound for a stream that has none."""
        change = self._registry.get(SHAPES, stream)
        if change is None:
            raise NotFound(f"the stream {stream} has no shapes")
        return _shapes_from_change(change)

    def remove(self, stream: str) -> None:
        """Raises NotFound for a stream that has none."""
        self.find(stream)
        self._put(stream, None)

    def _put(self, stream: str, value: Mapping[str, Any] | None) -> None:
        self._registry.put([(SHAPES, stream, value), (SHAPES_VERSION, NEWEST_SHAPES, {})])
        self.refresh()


def _shapes_from_change(change: RegistryChange) -> StreamShapes:
    assert change.value is not None, "a list has only what is there"
    return StreamShapes(change.key, ValidationMode(change.value["mode"]), change.value["text"], change.position)


# What people say about streams, as registry entries.

ABOUT = "about"


@dataclass(frozen=True)
class StreamDescription:
    """What is said about one stream; all of it may be missing."""

    title: str | None = None
    description: str | None = None
    licence: str | None = None
    """The IRI of the terms under which its events may be used."""
    keywords: tuple[str, ...] = ()
    version_of: str | None = None
    """The predicate by which an event, as subject, names that of which it is a version."""


NO_DESCRIPTION = StreamDescription()


def description_to_value(about: StreamDescription) -> Mapping[str, Any]:
    """What is stored under (`about`, stream)."""
    return {name: value for name, value in asdict(about).items() if value}


def read_description(registry: Registry, stream: str) -> StreamDescription:
    """What is said about a stream now."""
    change = registry.get(ABOUT, stream)
    return NO_DESCRIPTION if change is None else description_from_value(change.value or {})


def description_from_value(value: Mapping[str, Any]) -> StreamDescription:
    return StreamDescription(**{**value, "keywords": tuple(value.get("keywords", ()))})


# Streams: what their names may be.


def check_stream_name(text: str) -> str:
    """The name, if it is one: it stands in addresses, so that nothing in it ever needs to be escaped."""
    if len(text) > STREAM_NAME_CHARACTERS:
        raise BadRequest(f"a stream's name has at most {STREAM_NAME_CHARACTERS} characters, not {len(text)}")
    if not STREAM_NAME.fullmatch(text):
        raise BadRequest(f"{text!r} is no stream's name: letters, digits and . _ ~ - are, a letter or digit first")
    return text
