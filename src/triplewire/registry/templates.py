"""Templates as registry entries: query texts with parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triplewire.config import limits
from triplewire.errors import BadRequest
from triplewire.registry.ports import Change

TEMPLATE = "template"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*")


@dataclass(frozen=True)
class Template:
    """A query text whose `$` variables are parameters, each with the type that its values must have. `version` is the
    position at which it was put."""

    name: str
    sparql: str
    parameters: Mapping[str, str]
    version: int = 0


def to_value(template: Template) -> Mapping[str, Any]:
    """What is stored under (`template`, name). The version is not in it: it is the position of the change itself."""
    return {"sparql": template.sparql, "parameters": dict(template.parameters)}


def from_change(change: Change) -> Template:
    """The template that a change put. A removal puts none: raises ValueError."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    return Template(change.key, change.value["sparql"], change.value["parameters"], change.position)


def template_name(text: str) -> str:
    """The name, if it is one: it stands in addresses, so that nothing in it ever needs to be escaped."""
    if len(text) > limits.STREAM_NAME_CHARACTERS:
        raise BadRequest(f"a template's name has at most {limits.STREAM_NAME_CHARACTERS} characters, not {len(text)}")
    if not _NAME.fullmatch(text):
        raise BadRequest(f"{text!r} is no template's name: letters, digits and . _ ~ - are, a letter or digit first")
    return text
