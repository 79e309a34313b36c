"""What people say about streams, as registry entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from triplewire.registry.ports import Registry

ABOUT = "about"


@dataclass(frozen=True)
class About:
    """What is said about one stream; all of it may be missing."""

    title: str | None = None
    description: str | None = None
    licence: str | None = None
    """The IRI of the terms under which its events may be used."""
    keywords: tuple[str, ...] = ()
    version_of: str | None = None
    """The predicate by which an event, as subject, names that of which it is a version."""


NOTHING = About()


def to_value(about: About) -> Mapping[str, Any]:
    """What is stored under (`about`, stream)."""
    return {name: value for name, value in asdict(about).items() if value}


def about_of(registry: Registry, stream: str) -> About:
    """What is said about a stream now."""
    change = registry.get(ABOUT, stream)
    return NOTHING if change is None else from_value(change.value or {})


def from_value(value: Mapping[str, Any]) -> About:
    return About(**{**value, "keywords": tuple(value.get("keywords", ()))})
