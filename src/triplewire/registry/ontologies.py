"""Ontologies as registry entries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triplewire.config import limits
from triplewire.errors import BadRequest
from triplewire.registry.ports import Change

ONTOLOGY = "ontology"
VERSION = "ontologies"
"""The kind of one entry, always under the same key, that is put with every change to an ontology: its position tells
whether any has changed, without reading them."""
NEWEST = "newest"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*")


@dataclass(frozen=True)
class Loaded:
    """An ontology as it was loaded. `text` has a line `subject⇥predicate⇥object` for each triple, in canonical terms;
    `version` is the position at which it was loaded."""

    name: str
    text: str
    triples: int
    classes: int
    properties: int
    version: int = 0


def to_value(loaded: Loaded) -> Mapping[str, Any]:
    """What is stored under (`ontology`, name). The version is not in it: it is the position of the change itself."""
    return {
        "text": loaded.text,
        "triples": loaded.triples,
        "classes": loaded.classes,
        "properties": loaded.properties,
    }


def from_change(change: Change) -> Loaded:
    """The ontology that a change loaded. A removal loads none: raises ValueError."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    return Loaded(name=change.key, version=change.position, **change.value)


def ontology_name(text: str) -> str:
    """The name, if it is one: it stands in addresses, so that nothing in it ever needs to be escaped."""
    if len(text) > limits.STREAM_NAME_CHARACTERS:
        raise BadRequest(f"an ontology's name has at most {limits.STREAM_NAME_CHARACTERS} characters, not {len(text)}")
    if not _NAME.fullmatch(text):
        raise BadRequest(f"{text!r} is no ontology's name: letters, digits and . _ ~ - are, a letter or digit first")
    return text
